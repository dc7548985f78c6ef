// Package browser drives a Chromium without a window in tests of pages, by the DevTools
// protocol over two pipes (https://chromedevtools.github.io/devtools-protocol/).
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Browser shows one page. What the page throws, and what it writes to the console as an
// error, fails the test.
type Browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	session string
	number  int
	asked   []string
}

// Open starts one, which ends with the test. Where there is none it skips the test and says
// why; with LEAT_BROWSER=required it fails. A browser that has not done all within two minutes
// fails the test too.
func Open(t *testing.T) *Browser {
	path, err := exec.LookPath("chromium")
	if runtime.GOOS == "windows" {
		err = errors.New("Go passes no pipes to programs on Windows")
	}
	if err != nil {
		if os.Getenv("LEAT_BROWSER") == "required" {
			t.Fatal("LEAT_BROWSER=required, and ", err)
		}
		t.Skip("needs Chromium, of Debian's package chromium for example: ", err)
	}
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, where it expects them
	require.NoError(t, cmd.Start())
	theirIn.Close()
	theirOut.Close()
	require.NoError(t, out.SetReadDeadline(time.Now().Add(2*time.Minute)))
	b := &Browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		b.session = ""
		b.Do("Browser.close", nil)
		in.Close()
		out.Close()
		cmd.Wait()
	})
	target := b.Do("Target.createTarget", map[string]any{"url": "about:blank"})
	session := b.Do("Target.attachToTarget", map[string]any{"targetId": target["targetId"], "flatten": true})
	b.session = session["sessionId"].(string)
	for _, domain := range []string{"Network", "Page", "Runtime", "Log"} {
		b.Do(domain+".enable", nil)
	}
	return b
}

// Do calls a method of the protocol, and returns its result.
func (b *Browser) Do(method string, params map[string]any) map[string]any {
	b.t.Helper()
	b.number++
	message := map[string]any{"id": b.number, "method": method, "params": params}
	if params == nil {
		message["params"] = map[string]any{}
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	require.NoError(b.t, err)
	_, err = b.in.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		text, err := b.out.ReadBytes(0)
		require.NoError(b.t, err)
		var m received
		require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &m))
		b.event(&m)
		if m.ID == b.number {
			require.Empty(b.t, m.Error, method)
			return m.Result
		}
	}
}

// received is what the browser sends: an event, or the answer to the call of that number.
type received struct {
	ID     int
	Method string
	Params map[string]any
	Result map[string]any
	Error  map[string]any
}

func (b *Browser) event(m *received) {
	switch m.Method {
	case "Network.requestWillBeSent":
		b.asked = append(b.asked, m.Params["request"].(map[string]any)["url"].(string))
	case "Runtime.exceptionThrown":
		b.t.Errorf("the page throws %v", m.Params)
	case "Runtime.consoleAPICalled":
		if m.Params["type"] == "error" {
			b.t.Errorf("the page writes an error to the console: %v", m.Params["args"])
		}
	case "Log.entryAdded": // what the browser itself has to complain about
		if entry := m.Params["entry"].(map[string]any); entry["level"] == "error" {
			b.t.Errorf("the console has an error: %v", entry)
		}
	}
}

// Asked are the addresses that the browser has asked for so far.
func (b *Browser) Asked() []string { return b.asked }

// Value is that of an expression, which may be a promise.
func (b *Browser) Value(expression string) any {
	b.t.Helper()
	r := b.Do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	require.NotContains(b.t, r, "exceptionDetails", expression)
	return r["result"].(map[string]any)["value"]
}

// Await waits until an expression is true.
func (b *Browser) Await(expression string) {
	b.t.Helper()
	b.Value(`new Promise((done) => { const look = () => (` + expression + `) ? done(true) : setTimeout(look, 10); look(); })`)
}

// A Screen is what a page is shown on, in CSS pixels. One that is narrower than 500 is a phone's.
type Screen struct {
	Width, Height int
	Dark          bool
}

// Screens are those that every page is tried on: a phone's and a desk's, by day and by night.
var Screens = []Screen{{360, 740, false}, {360, 740, true}, {1440, 900, false}, {1440, 900, true}}

// Show opens a page, and waits until it is complete and an expression is true.
func (b *Browser) Show(url string, s Screen, until string) {
	b.t.Helper()
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	b.Do("Emulation.setDeviceMetricsOverride", map[string]any{"width": s.Width, "height": s.Height, "deviceScaleFactor": 1, "mobile": s.Width < 500})
	b.Do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}})
	b.Do("Page.navigate", map[string]any{"url": url})
	b.Await(`document.readyState === "complete" && (` + until + `)`)
}

// Mouse sends an event of the left button: mousePressed, mouseMoved or mouseReleased.
func (b *Browser) Mouse(kind string, x, y float64) {
	b.Do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1})
}

var codes = map[string]int{" ": 32, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Delete": 46, "Tab": 9, "Enter": 13}

// Key presses a key: Space (" "), Tab, Enter, Delete or an arrow.
func (b *Browser) Key(name string) {
	text := map[string]string{" ": " ", "Enter": "\r"}[name]
	b.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "text": text, "windowsVirtualKeyCode": codes[name]})
	b.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "windowsVirtualKeyCode": codes[name]})
}

// Picture writes a picture of what is seen, or of the whole page, to the folder
// LEAT_SHOTS, if that is set.
func (b *Browser) Picture(name string, whole bool) {
	folder := os.Getenv("LEAT_SHOTS")
	if folder == "" {
		return
	}
	data := b.Do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole})["data"].(string)
	png, err := base64.StdEncoding.DecodeString(data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600))
}
