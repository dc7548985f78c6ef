package ui

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// admits reports whether a request may be answered, and otherwise refuses it before anything
// is looked at.
//
// The Host header is what a browser was told to ask for. A name that a foreign site had
// resolved to this machine shows there, since nobody but the browser writes it; so does
// http.Server refuse a request with two of them.
func (p *Page) admits(w http.ResponseWriter, r *http.Request) bool {
	if name := hostname(r.Host); !loopback(name) && !slices.Contains(p.hosts, name) {
		refuse(w, http.StatusForbidden, fmt.Sprintf("%q is not a name of this page: ask for localhost, or have the program name it in ui.Options.Hosts", r.Host))
		return false
	}
	if o := r.Header.Get("Origin"); o != "" && o != "http://"+r.Host && o != "https://"+r.Host {
		refuse(w, http.StatusForbidden, "pages of other origins are not answered")
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "there is nothing to be changed here")
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, why string) {
	private(w.Header())
	http.Error(w, why, status)
}

// private has a browser ask nobody but this server for anything, keep nothing, and give
// nothing to pages of other origins.
func private(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// hostname is a Host header without its port, in one way of writing.
func hostname(host string) string {
	if strings.HasPrefix(host, "[") { // [::1]:6060
		address, port, ok := strings.Cut(host[1:], "]")
		if !ok || (port != "" && port[0] != ':') || !strings.Contains(address, ":") {
			return ""
		}
		return canonical(address)
	}
	if strings.Count(host, ":") > 1 {
		return "" // an address of IPv6 stands in brackets
	}
	name, _, _ := strings.Cut(host, ":")
	return canonical(name)
}

// canonical is a name, or an address, in one way of writing.
func canonical(name string) string {
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap().String()
	}
	return name
}

// loopback reports whether a name in that way of writing can be of this machine only.
func loopback(name string) bool {
	if name == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.IsLoopback()
}
