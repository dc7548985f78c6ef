package ui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/internal/browser"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/ui"
	"github.com/leat-go/leat/prefetch"
)

// ready is true when the page shows both pipelines, with a picture of the first.
const ready = `document.querySelectorAll(".pipeline").length === 2 && document.querySelector(".timeline svg rect")`

const fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"

// A person looks at two pipelines, on a phone and on a desk, by day and by night: the figures
// move, nothing sticks out, all can be reached by keyboard, and the page asks nobody but its
// server.
func TestThePageInABrowser(t *testing.T) {
	b := browser.Open(t)
	slow := onDevice(t, data{2 * time.Millisecond}, loader.Options{Workers: 2, Shuffle: true, Seed: 7}, observe.NewRecorder(observe.Options{}))
	// Its loop waits for reads that wait, so that the number of workers is soon changed.
	plain := onHost(t, data{20 * time.Millisecond}, loader.Options{}, prefetch.Options{})
	page := ui.New(ui.Options{})
	page.Show("train <b>&amp;", slow) // a name is text
	page.Show("validation", plain)
	train(t, slow, 5*time.Millisecond)
	train(t, plain, 0)
	url := serve(t, page)
	for _, s := range browser.Screens {
		name := fmt.Sprintf("%d-dark=%v", s.Width, s.Dark)
		b.Show(url, s, ready)
		require.Equal(t, true, b.Value(fits), "%s: nothing sticks out", name)
		require.Equal(t, "train <b>&amp;", b.Value(`document.querySelector("h2").textContent`))

		// The figures move.
		total := `Number(document.querySelector(".place dl").textContent.match(/(\d+) batches/)[1])`
		before := b.Value(total)
		b.Await(total + fmt.Sprintf(" > %v", before))
		b.Await(`document.querySelector(".history polyline").getAttribute("points").split(" ").length >= 4`)
		pace := b.Value(`document.querySelector(".pace dd").textContent`).(string)
		require.Regexp(t, `^[1-9]`, pace, "samples a second")
		require.Equal(t, "reading", b.Value(`document.querySelector(".stages li.slow b").textContent`), "two workers are too few")
		require.Contains(t, b.Value(`document.querySelector(".parts").textContent`), "producers")
		require.Contains(t, b.Value(`document.querySelectorAll(".timeline")[1].textContent`), "observe.Recorder")
		b.Await(`document.querySelector(".decisions li")`)
		require.Regexp(t, `workers: \d+ → \d+\. a trial: `, b.Value(`document.querySelectorAll(".decisions")[1].textContent`))
		require.Equal(t, true, b.Value(`document.querySelector(".tuned").hidden`), "the first has a fixed number of workers")
		b.Picture(name, true)

		// By keyboard: to the button first, which stops the figures and lets them go on.
		b.Key("Tab")
		require.Equal(t, "pause", b.Value("document.activeElement.id"), "the first to be reached")
		b.Key(" ")
		require.Equal(t, "Paused", b.Value("state.textContent"))
		b.Key(" ")
		b.Await(`state.textContent.startsWith("Live")`)
		b.Key("Tab")
		require.Equal(t, "report.json", b.Value(`document.activeElement.getAttribute("href")`))
		b.Key("Tab")
		require.Equal(t, "timeline", b.Value("document.activeElement.className"), "it can be scrolled")
		b.Key("Tab")
		require.Contains(t, b.Value("document.activeElement.href"), "timeline.json?pipeline=train%20%3Cb%3E%26amp%3B")
		b.Key("Tab")
		require.Equal(t, "SUMMARY", b.Value("document.activeElement.tagName"))
		b.Key("Enter")
		require.Equal(t, true, b.Value("document.activeElement.parentElement.open"))
		b.Value(`document.querySelectorAll("details").forEach((d) => { d.open = true })`)
		require.Equal(t, true, b.Value(fits), "%s: nothing sticks out, all opened", name)
		b.Picture(name+"-open", true)
	}
	page.Hide("validation")
	b.Await(`document.querySelectorAll(".pipeline").length === 1`)
	require.NotEmpty(t, b.Asked())
	for _, address := range b.Asked() {
		require.True(t, strings.HasPrefix(address, url) || strings.HasPrefix(address, "data:"), address)
	}
}
