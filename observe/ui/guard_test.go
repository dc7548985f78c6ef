package ui_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/ui"
	"github.com/leat-go/leat/prefetch"
)

var paths = []string{"", "page.js", "page.css", "report.json", "timeline.svg?pipeline=train", "timeline.json?pipeline=train"}

// A page answers to names of the loopback interface and to those that it was given, and to no
// other: a foreign name that leads here is a foreign site's.
func TestOnlyItsOwnNamesAreAnswered(t *testing.T) {
	page := ui.New(ui.Options{Hosts: []string{"Node7", "10.0.0.7", "[FD00::7]"}})
	pf := onHost(t, data{}, loader.Options{}, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	page.Show("train", pf)
	take(t, pf, 3)
	status := func(host, origin, method, path string) (int, http.Header, string) {
		r := httptest.NewRequest(method, "/debug/leat/"+path, nil)
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w.Code, w.Result().Header, w.Body.String()
	}
	for _, path := range paths {
		for _, host := range []string{
			"localhost", "localhost:6060", "LOCALHOST.", "LOCALHOST.:80", "127.0.0.1:6060", "127.8.9.1", "[::1]", "[::1]:6060", "[::ffff:127.0.0.1]:1",
			"node7:6060", "NODE7", "10.0.0.7:1", "[fd00::7]:6060", "[fd00:0::7]",
		} {
			code, header, _ := status(host, "", "GET", path)
			require.Equal(t, http.StatusOK, code, "%s %s", host, path)
			require.Empty(t, header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, "same-origin", header.Get("Cross-Origin-Resource-Policy"))
			require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
		}
		for _, host := range []string{
			"attacker.example", "localhost.evil.example", "evil-localhost", "localhost@evil.example", "127.0.0.1.evil.example:6060", "10.0.0.8", "0.0.0.0",
			"", ":6060", "[::2]", "[::1", "::1", "[localhost]", "[::1]evil", "node77", "xn--localhost-", "127.0.0.1:80:80", "localhost,attacker.example",
		} {
			code, _, text := status(host, "", "GET", path)
			require.Equal(t, http.StatusForbidden, code, "%q %s", host, path)
			require.NotContains(t, text, "train", "nothing is told before")
		}
		for origin, want := range map[string]int{
			"http://localhost:6060": 200, "https://localhost:6060": 200,
			"http://localhost:8080": 403, "http://attacker.example": 403, "null": 403, "http://localhost:6060.evil.example": 403,
		} {
			code, _, _ := status("localhost:6060", origin, "GET", path)
			require.Equal(t, want, code, "%s %s", origin, path)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE"} {
			code, header, _ := status("localhost", "", method, path)
			require.Equal(t, http.StatusMethodNotAllowed, code)
			require.Equal(t, "GET, HEAD", header.Get("Allow"))
		}
		code, header, text := status("localhost", "", "HEAD", path)
		require.Equal(t, http.StatusOK, code)
		require.NotEqual(t, "0", header.Get("Content-Length"))
		require.Empty(t, text)
	}
	for path, want := range map[string]int{
		"nosuch": 404, "page/index.html": 404, "timeline.svg": 404, "timeline.svg?pipeline=other": 404,
		"timeline.svg?pipeline=train&steps=0": 400, "timeline.svg?pipeline=train&steps=65": 400, "timeline.svg?pipeline=train&steps=many": 400,
		"timeline.svg?pipeline=train&steps=64": 200,
	} {
		code, _, _ := status("localhost", "", "GET", path)
		require.Equal(t, want, code, path)
	}
}

// Two Host headers, or none, don't get as far as the page: the server refuses them.
func TestTwoHostsAreNone(t *testing.T) {
	s := httptest.NewServer(ui.Handler())
	defer s.Close()
	for hosts, want := range map[string]string{
		"Host: localhost\r\n":                           "200",
		"Host: localhost\r\nHost: attacker.example\r\n": "400",
		"Host: attacker.example\r\nHost: localhost\r\n": "400",
		"": "400",
		"Host: attacker.example\r\nX-Forwarded-Host: localhost\r\n": "403",
	} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(c, "GET /report.json HTTP/1.1\r\n%sConnection: close\r\n\r\n", hosts)
		require.NoError(t, err)
		line, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(line, "HTTP/1.1 "+want), "%q: %s", hosts, line)
		_, _ = io.Copy(io.Discard, c)
		require.NoError(t, c.Close())
	}
}
