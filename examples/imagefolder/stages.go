package main

import (
	"fmt"
	"image"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/image/draw"

	"github.com/leat-go/leat/loader/images"
	"github.com/leat-go/leat/prefetch"
)

// stages adds up how long the workers decode and scale.
type stages struct{ decoding, scaling atomic.Int64 }

// watch is o with a Decoder and a Scaler that take their time.
func (s *stages) watch(o images.Options) images.Options {
	o.Decoder, o.Scaler = decoder{images.Standard{}, &s.decoding}, scaler{draw.BiLinear, &s.scaling}
	return o
}

// decoder is another that counts its time.
type decoder struct {
	images.Decoder
	took *atomic.Int64
}

func (d decoder) Decode(data []byte, c images.Config, dst *image.RGBA) error {
	defer count(d.took, time.Now())
	return d.Decoder.Decode(data, c, dst)
}

func (d decoder) String() string { return fmt.Sprint(d.Decoder) }

// scaler is likewise.
type scaler struct {
	draw.Scaler
	took *atomic.Int64
}

func (s scaler) Scale(dst draw.Image, dr image.Rectangle, src image.Image, sr image.Rectangle, op draw.Op, o *draw.Options) {
	defer count(s.took, time.Now())
	s.Scaler.Scale(dst, dr, src, sr, op, o)
}

func count(to *atomic.Int64, from time.Time) { to.Add(int64(time.Since(from))) }

// report says what took how long. The stages work at the same time, so the parts of the workers'
// time, of the copies and of the loop don't add up.
func (s *stages) report(stats prefetch.Stats) string {
	var busy time.Duration
	for _, b := range stats.Loader.Busy {
		busy += b
	}
	decoding, scaling := time.Duration(s.decoding.Load()), time.Duration(s.scaling.Load())
	loop := stats.Body + stats.Wait()
	var b strings.Builder
	share := func(what string, part, of time.Duration) {
		if of > 0 {
			fmt.Fprintf(&b, "  %-34s %4.0f%%\n", what, 100*float64(part)/float64(of))
		}
	}
	fmt.Fprintf(&b, "workers: %v for %d pictures\n", busy.Round(time.Millisecond), stats.Samples)
	share("decoding", decoding, busy)
	share("scaling", scaling, busy)
	share("opening, reading and packing", busy-decoding-scaling, busy)
	fmt.Fprintf(&b, "training loop: %v\n", loop.Round(time.Millisecond))
	share("submitting steps", stats.Body, loop)
	share("waiting for pictures", stats.WaitProducer+stats.WaitOrder, loop)
	share("waiting for the device", stats.WaitDevice, loop)
	share("copies, all in all", stats.CopyTime, loop)
	return b.String()
}
