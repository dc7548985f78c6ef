//go:build unix

package observe_test

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/prefetch"
)

// rows is a dataset of samples of so many bytes, which are copied from memory.
type rows struct{ bytes []byte }

func (r rows) Len() int { return 1 << 30 }

func (r rows) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{len(r.bytes)}}}
}

func (r rows) Read(_ context.Context, _ int, row *loader.Row) error {
	copy(row.Bytes("x"), r.bytes)
	return nil
}

// BenchmarkRecorder is what a recorder costs: two pipelines, one with it and one without, take
// turns of 20 ms, and of the ratios of neighbouring turns the median is told, in percent: of
// the time of all processors that a batch takes, which does not depend on what else the
// machine does.
func BenchmarkRecorder(b *testing.B) {
	for _, c := range []struct{ bytes, batch int }{{1, 1}, {784, 128}, {784, 1024}, {150528, 16}} {
		for _, on := range []bool{false, true} {
			kind := map[bool]string{false: "none", true: "cpu"}[on]
			b.Run(fmt.Sprintf("device=%s/sample=%dB/batch=%d", kind, c.bytes, c.batch), func(b *testing.B) {
				plain, endPlain := taker(b, rows{make([]byte, c.bytes)}, c.batch, on, nil)
				defer endPlain()
				recorded, endRecorded := taker(b, rows{make([]byte, c.bytes)}, c.batch, on, observe.NewRecorder(observe.Options{}))
				defer endRecorded()
				var ratios []float64
				b.ReportAllocs()
				for b.Loop() {
					a, c := perBatch(plain), perBatch(recorded)
					ratios = append(ratios, float64(c)/float64(a))
				}
				slices.Sort(ratios)
				b.ReportMetric(100*(ratios[len(ratios)/2]-1), "%cost")
				b.ReportMetric(float64(perBatch(plain)), "ns/batch")
			})
		}
	}
}

// perBatch is how much processors' time a batch takes, over 20 ms.
func perBatch(next func()) time.Duration {
	began, n := processors(), 0
	for t := time.Now(); time.Since(t) < 20*time.Millisecond; {
		for range 16 {
			next()
		}
		n += 16
	}
	return (processors() - began) / time.Duration(n)
}

// processors is the time that this program has used of all processors.
func processors() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// taker makes a pipeline and returns what takes a batch of it.
func taker(b *testing.B, data rows, batch int, onDevice bool, to journal.Recorder) (next, end func()) {
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	ld, err := loader.New(data, batch, loader.Options{Shuffle: true})
	check(err)
	var pf *prefetch.Prefetcher
	closeDevice := func() {}
	if !onDevice {
		pf, err = prefetch.NewHost(ld, prefetch.Options{Recorder: to})
		check(err)
	} else {
		dev, err := cpu.Open(cpu.Options{})
		check(err)
		compute, err := dev.NewStream(device.StreamOptions{})
		check(err)
		pf, err = prefetch.New(compute, ld, prefetch.Options{Recorder: to})
		check(err)
		closeDevice = func() {
			check(compute.Close())
			check(dev.Close())
		}
	}
	rd, err := pf.Open(context.Background())
	check(err)
	next = func() {
		batch, err := rd.Next(context.Background())
		check(err)
		batch.Release()
	}
	return next, func() {
		check(rd.Close())
		check(pf.Close())
		closeDevice()
	}
}

// BenchmarkTold is what the calls of a recorder take.
func BenchmarkTold(b *testing.B) {
	began := time.Now()
	b.Run("call=Step", func(b *testing.B) {
		r := observe.NewRecorder(observe.Options{})
		s := journal.Step{Rows: 128, Valid: 128, Bytes: 1 << 17, Upload: 3, Parts: journal.Parts{HostSlot: 40000, Body: 3000}}
		s.Opened, s.Filled, s.Sent, s.Called, s.Delivered, s.Ended = began, began.Add(1000), began.Add(2000), began.Add(1000), began.Add(41000), began.Add(44000)
		b.ReportAllocs()
		for b.Loop() {
			r.Step(&s)
		}
	})
	b.Run("call=Read", func(b *testing.B) {
		r := observe.NewRecorder(observe.Options{})
		b.ReportAllocs()
		for b.Loop() {
			r.Reading(1)
			r.Read(journal.Read{Worker: 1, Samples: 64, From: began, Took: 50000})
		}
	})
}
