package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/leat-go/leat/observe/ui"
)

// A Page is what one URL has answered.
type Page struct {
	URL    string     `json:"url"`
	Report *ui.Report `json:"report,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// Options says how pages are read.
type Options struct {
	// Interval is the time that figures are of: between two reads of each page, longer where
	// somebody else looks at it.
	Interval time.Duration
	// Timeout is how long an answer may take.
	Timeout time.Duration
}

// most is how large an answer may be.
const most = 8 << 20

// Address is the address of a page's JSON: of a whole URL, or of a host and a port, whose page
// is at /debug/leat/.
func Address(page string) (string, error) {
	if !strings.Contains(page, "://") {
		page = "http://" + page
	}
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is no page's address, want http://HOST:PORT/debug/leat/ or HOST:PORT", page)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/debug/leat/"
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u.JoinPath("report.json").String(), nil
}

// Read reads all pages at the same time, twice. A page that can't be read is one with an
// Error. When ctx is done it returns its cause.
func Read(ctx context.Context, pages []string, o Options) ([]Page, error) {
	client := &http.Client{
		// A page is asked itself, and no other one that it, or a proxy, names.
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	all := readAll(ctx, client, pages, o.Timeout)
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(o.Interval):
	}
	again := readAll(ctx, client, pages, o.Timeout)
	for i := range all {
		if again[i].Report != nil || all[i].Report == nil {
			all[i] = again[i]
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, nil
}

func readAll(ctx context.Context, client *http.Client, pages []string, timeout time.Duration) []Page {
	all := make([]Page, len(pages))
	var done sync.WaitGroup
	for i, page := range pages {
		done.Go(func() {
			all[i].URL = page
			r, err := read(ctx, client, page, timeout)
			if err != nil {
				all[i].Error = clean(err.Error())
				return
			}
			all[i].Report = r
		})
	}
	done.Wait()
	return all
}

func read(ctx context.Context, client *http.Client, page string, timeout time.Duration) (*ui.Report, error) {
	address, err := Address(page)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %s: %s", response.Status, firstLine(text))
	case len(text) > most:
		return nil, fmt.Errorf("its answer is larger than %d bytes: it is no page of package ui", most)
	}
	var r ui.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("it is no page of package ui: %w", err)
	}
	if r.Format != ui.Format {
		return nil, fmt.Errorf("its format is %q, want %q", r.Format, ui.Format)
	}
	r.Node = clean(r.Node)
	for i := range r.Pipelines {
		p := &r.Pipelines[i]
		p.Name, p.Explanation.Bottleneck = clean(p.Name), clean(p.Explanation.Bottleneck)
	}
	return &r, nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text[:min(len(text), 200)]), "\n")
	return line
}

// clean is text of another program without what a terminal would take for a command.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
