package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/internal/browser"
)

// ready is true when the page is.
const ready = `document.querySelectorAll("#shares li").length === 10`

// A person draws a digit, with a mouse or by the keyboard, and sees which one it is, on a
// phone and on a desk, by day and by night; and the page asks nobody but its server.
func TestThePageInABrowser(t *testing.T) {
	b := browser.Open(t)
	_, url := start(t)
	for _, c := range browser.Screens {
		name := fmt.Sprintf("%d-dark=%v", c.Width, c.Dark)
		b.Show(url, c, ready)
		require.LessOrEqual(t, b.Value("document.documentElement.scrollWidth"), float64(c.Width), "%s: nothing sticks out", name)
		require.Equal(t, "?", b.Value("digit.textContent"))

		// A seven, by mouse.
		b.Value(`canvas.scrollIntoView({block: "start"})`)
		box := b.Value("(({x, y, width, height}) => [x, y, width, height])(canvas.getBoundingClientRect())").([]any)
		at := func(x, y float64) (float64, float64) {
			return box[0].(float64) + x*box[2].(float64), box[1].(float64) + y*box[3].(float64)
		}
		x, y := at(0.28, 0.22)
		b.Mouse("mousePressed", x, y)
		for i := range 11 {
			x, y = at(0.28+0.044*float64(i), 0.22)
			b.Mouse("mouseMoved", x, y)
		}
		for i := range 11 {
			x, y = at(0.72-0.028*float64(i), 0.22+0.058*float64(i))
			b.Mouse("mouseMoved", x, y)
		}
		b.Mouse("mouseReleased", x, y)
		b.Await(`digit.textContent !== "?"`)
		require.Equal(t, "7", b.Value("digit.textContent"), name)
		require.Contains(t, b.Value("note.textContent"), "It is a 7")
		b.Value("scrollTo(0, 0)")
		b.Picture(name, false)

		// A one, by keyboard, from the top of the page.
		b.Show(url, c, ready)
		b.Key("Tab")
		require.Equal(t, "canvas", b.Value("document.activeElement.id"), "the first to be reached")
		for range 9 {
			b.Key("ArrowUp")
		}
		b.Key(" ")
		for range 18 {
			b.Key("ArrowDown")
		}
		b.Key(" ")
		b.Await(`digit.textContent === "1"`)
		require.Equal(t, "The pen is up.", b.Value("pen.textContent"))
		b.Picture(name+"-keys", false)
		b.Key("Delete")
		require.Equal(t, "?", b.Value("digit.textContent"))
		b.Key("Tab")
		require.Equal(t, "clear", b.Value("document.activeElement.id"))
		b.Value("document.activeElement.click()")
		require.Equal(t, "?", b.Value("digit.textContent"))
	}
	require.NotEmpty(t, b.Asked())
	for _, address := range b.Asked() {
		require.True(t, strings.HasPrefix(address, url+"/") || strings.HasPrefix(address, "data:"), address)
	}
}
