package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// browser is a Chromium without a window, driven by the DevTools protocol over two pipes.
type browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	session string
	number  int
	asked   []string // addresses
}

// openBrowser starts one, or skips and says why; with LEAT_BROWSER=required it fails.
func openBrowser(t *testing.T) *browser {
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
	// One that does not answer fails the test.
	require.NoError(t, out.SetReadDeadline(time.Now().Add(2*time.Minute)))
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		b.session = ""
		b.do("Browser.close", nil)
		in.Close()
		out.Close()
		cmd.Wait()
	})
	target := b.do("Target.createTarget", map[string]any{"url": "about:blank"})
	session := b.do("Target.attachToTarget", map[string]any{"targetId": target["targetId"], "flatten": true})
	b.session = session["sessionId"].(string)
	b.do("Network.enable", nil)
	b.do("Page.enable", nil)
	b.do("Runtime.enable", nil)
	return b
}

// do calls a method, and returns its result.
func (b *browser) do(method string, params map[string]any) map[string]any {
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
		var answer struct {
			ID     int
			Method string
			Params map[string]any
			Result map[string]any
			Error  map[string]any
		}
		require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &answer))
		switch answer.Method {
		case "Network.requestWillBeSent":
			b.asked = append(b.asked, answer.Params["request"].(map[string]any)["url"].(string))
		case "Runtime.exceptionThrown":
			b.t.Errorf("the page throws %v", answer.Params)
		}
		if answer.ID == b.number {
			require.Empty(b.t, answer.Error, method)
			return answer.Result
		}
	}
}

// value is that of an expression, which may be a promise.
func (b *browser) value(expression string) any {
	b.t.Helper()
	r := b.do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	require.NotContains(b.t, r, "exceptionDetails", expression)
	return r["result"].(map[string]any)["value"]
}

// await waits until an expression is true; the pipe's deadline ends it otherwise.
func (b *browser) await(expression string) {
	b.t.Helper()
	b.value(`new Promise((done) => { const look = () => (` + expression + `) ? done(true) : setTimeout(look, 10); look(); })`)
}

func (b *browser) open(url string, width, height int, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}})
	b.do("Page.navigate", map[string]any{"url": url})
	b.await(`document.readyState === "complete" && document.querySelectorAll("#shares li").length === 10`)
}

func (b *browser) mouse(kind string, x, y float64) {
	b.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1})
}

func (b *browser) key(name string) {
	text := map[string]string{" ": " "}[name]
	code := map[string]int{" ": 32, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Delete": 46, "Tab": 9, "Enter": 13}[name]
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "text": text, "windowsVirtualKeyCode": code})
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "windowsVirtualKeyCode": code})
}

// shot writes a picture of the page to the folder LEAT_SHOTS, if that is set.
func (b *browser) shot(name string) {
	folder := os.Getenv("LEAT_SHOTS")
	if folder == "" {
		return
	}
	data := b.do("Page.captureScreenshot", map[string]any{"format": "png"})["data"].(string)
	png, err := base64.StdEncoding.DecodeString(data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600))
}

// A person draws a digit, with a mouse or by the keyboard, and sees which one it is, on a
// phone and on a desk, by day and by night; and the page asks nobody but its server.
func TestThePageInABrowser(t *testing.T) {
	b := openBrowser(t)
	_, url := start(t)
	for _, c := range []struct {
		width, height int
		dark          bool
	}{{360, 740, false}, {360, 740, true}, {1440, 900, false}, {1440, 900, true}} {
		name := fmt.Sprintf("%d-dark=%v", c.width, c.dark)
		b.open(url, c.width, c.height, c.dark)
		require.LessOrEqual(t, b.value("document.documentElement.scrollWidth"), float64(c.width), "%s: nothing sticks out", name)
		require.Equal(t, "?", b.value("digit.textContent"))

		// A seven, by mouse.
		b.value(`canvas.scrollIntoView({block: "start"})`)
		box := b.value("(({x, y, width, height}) => [x, y, width, height])(canvas.getBoundingClientRect())").([]any)
		at := func(x, y float64) (float64, float64) {
			return box[0].(float64) + x*box[2].(float64), box[1].(float64) + y*box[3].(float64)
		}
		x, y := at(0.28, 0.22)
		b.mouse("mousePressed", x, y)
		for i := range 11 {
			x, y = at(0.28+0.044*float64(i), 0.22)
			b.mouse("mouseMoved", x, y)
		}
		for i := range 11 {
			x, y = at(0.72-0.028*float64(i), 0.22+0.058*float64(i))
			b.mouse("mouseMoved", x, y)
		}
		b.mouse("mouseReleased", x, y)
		b.await(`digit.textContent !== "?"`)
		require.Equal(t, "7", b.value("digit.textContent"), name)
		require.Contains(t, b.value("note.textContent"), "It is a 7")
		b.value("scrollTo(0, 0)")
		b.shot(name)

		// A one, by keyboard, from the top of the page.
		b.open(url, c.width, c.height, c.dark)
		b.key("Tab")
		require.Equal(t, "canvas", b.value("document.activeElement.id"), "the first to be reached")
		for range 9 {
			b.key("ArrowUp")
		}
		b.key(" ")
		for range 18 {
			b.key("ArrowDown")
		}
		b.key(" ")
		b.await(`digit.textContent === "1"`)
		require.Equal(t, "The pen is up.", b.value("pen.textContent"))
		b.shot(name + "-keys")
		b.key("Delete")
		require.Equal(t, "?", b.value("digit.textContent"))
		b.key("Tab")
		require.Equal(t, "clear", b.value("document.activeElement.id"))
		b.value("document.activeElement.click()")
		require.Equal(t, "?", b.value("digit.textContent"))
	}
	require.NotEmpty(t, b.asked)
	for _, address := range b.asked {
		require.True(t, strings.HasPrefix(address, url+"/") || strings.HasPrefix(address, "data:"), address)
	}
}
