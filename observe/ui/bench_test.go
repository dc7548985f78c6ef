package ui_test

import (
	"testing"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/ui"
	"github.com/leat-go/leat/prefetch"
)

// What a look costs the program, with all steps kept: a page that is open takes a report once a
// second, and a picture every third time.
func BenchmarkLook(b *testing.B) {
	ld, err := loader.New(data{}, 16, loader.Options{Workers: 2})
	if err != nil {
		b.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	if err != nil {
		b.Fatal(err)
	}
	defer pf.Close()
	page := ui.Handler(pf)
	n := 0
	for _, err := range pf.Batches(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		if n++; n == 2000 {
			break
		}
	}
	b.Run("of=report", func(b *testing.B) {
		for b.Loop() {
			_ = page.String()
		}
	})
	b.Run("of=picture", func(b *testing.B) {
		for b.Loop() {
			get(b, page, "timeline.svg?pipeline=pipeline+1")
		}
	})
}
