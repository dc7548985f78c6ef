package group_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// pictures is a dataset of n samples of so many bytes, which are copied from memory that no
// cache holds.
func pictures(n, bytes int) loader.Dataset {
	all := make([]byte, min(n*bytes, 512<<20))
	for i := range all {
		all[i] = byte(i >> 8)
	}
	return loader.FromFunc(n, []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{bytes}}}, func(_ context.Context, i int, row *loader.Row) error {
		at := i * bytes % (len(all) - bytes + 1)
		copy(row.Bytes("x"), all[at:at+bytes])
		return nil
	})
}

// A member is what one way of bringing batches to several devices is measured by.
type member struct {
	name string
	step func() error
	done func() error
}

// pulled is a range as a member.
func pulled[T any](name string, done func() error, all ...iter.Seq2[T, error]) member {
	var next []func() (T, error, bool)
	var stop []func()
	for _, of := range all {
		n, s := iter.Pull2(of)
		next, stop = append(next, n), append(stop, s)
	}
	return member{name, func() error {
		for _, n := range next {
			if _, err, _ := n(); err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		for _, s := range stop {
			s()
		}
		return done()
	}}
}

// grouped is a Group of the streams.
func grouped(b *testing.B, streams []*device.Stream, ld *loader.Loader) member {
	g, err := group.New(streams, ld, prefetch.Options{})
	require.NoError(b, err)
	return pulled("group", g.Close, g.All(context.Background()))
}

// separate is a Prefetcher for each of the streams, each with the defaults of one that is
// alone.
func separate(b *testing.B, streams []*device.Stream, data loader.Dataset, batch int, lo loader.Options) member {
	var all []*prefetch.Prefetcher
	var ranges []iter.Seq2[prefetch.Batch, error]
	for i, s := range streams {
		lo.Shard = loader.Shard{Index: i, Count: len(streams)}
		ld, err := loader.New(data, batch/len(streams), lo)
		require.NoError(b, err)
		pf, err := prefetch.New(s, ld, prefetch.Options{})
		require.NoError(b, err)
		all, ranges = append(all, pf), append(ranges, pf.All(context.Background()))
	}
	return pulled("separate", func() error {
		var errs []error
		for _, pf := range all {
			errs = append(errs, pf.Close())
		}
		return errors.Join(errs...)
	}, ranges...)
}

// alone is one Prefetcher on one of the streams, with the whole batch.
func alone(b *testing.B, s *device.Stream, ld *loader.Loader) member {
	pf, err := prefetch.New(s, ld, prefetch.Options{})
	require.NoError(b, err)
	return pulled("alone", pf.Close, pf.All(context.Background()))
}

// compare runs the ways by turns, some steps of each, so that what else the machine does
// meets all of them, and reports the time of a step and its ratio to the first way's.
func compare(b *testing.B, bytes int, ways ...member) {
	const steps = 16
	took := make([]time.Duration, len(ways))
	run := func(i, n int) {
		for range n {
			if err := ways[i].step(); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i := range ways {
		run(i, 2*steps)
	}
	n := 0
	for b.Loop() {
		for i := range ways {
			run(i, 2) // what was ready before does not count
			start := time.Now()
			run(i, steps)
			took[i] += time.Since(start)
		}
		n += steps
	}
	for i, w := range ways {
		b.ReportMetric(float64(took[i].Nanoseconds())/float64(n), w.name+"-ns/step")
		if i > 0 {
			b.ReportMetric(took[0].Seconds()/took[i].Seconds(), ways[0].name+"/"+w.name)
		}
	}
	b.ReportMetric(float64(bytes)*float64(n)/took[0].Seconds()/1e9, "GB/s")
	b.ReportMetric(0, "ns/op")
	for _, w := range ways {
		require.NoError(b, w.done())
	}
}

// A Group against a pipeline for each device that knows of no other, and against one device
// with the whole batch: the larger the batches, the more it is the memory that they share.
func benchmarkGroup(b *testing.B, streams []*device.Stream) {
	for _, c := range []struct{ bytes, batch int }{{784, 64}, {784, 4096}, {3 * 224 * 224, 64}, {3 * 224 * 224, 256}} {
		b.Run(fmt.Sprintf("devices=%d/sample=%d/batch=%d", len(streams), c.bytes, c.batch), func(b *testing.B) {
			data := pictures(1<<17, c.bytes)
			lo := loader.Options{Shuffle: true, Last: loader.Drop, Epochs: 1 << 20}
			ld, err := loader.New(data, c.batch, lo)
			require.NoError(b, err)
			compare(b, c.bytes*c.batch, grouped(b, streams, ld), separate(b, streams, data, c.batch, lo), alone(b, streams[0], ld))
		})
	}
}

func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{2, 4} {
		benchmarkGroup(b, plainCards(b, n))
	}
}

func BenchmarkGPUGroup(b *testing.B) {
	all, err := cuda.List()
	if err != nil || len(all) == 0 {
		b.Skip("needs a GPU: ", err)
	}
	var streams []*device.Stream
	for i := range max(2, len(all)) {
		dev, err := cuda.Open(cuda.Options{Index: i % len(all)})
		require.NoError(b, err)
		s, err := dev.NewStream(device.StreamOptions{})
		require.NoError(b, err)
		streams = append(streams, s)
	}
	benchmarkGroup(b, streams)
	for _, s := range streams {
		require.NoError(b, s.Close())
		require.NoError(b, s.Device().Close())
	}
}

// What a Pool costs for a batch, against a Map of one device.
func BenchmarkPool(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("devices=%d", n), func(b *testing.B) {
			data := pictures(1<<20, 64)
			ld, err := loader.New(data, 16, loader.Options{})
			require.NoError(b, err)
			p, err := group.NewPool(plainCards(b, n), ld, prefetch.Options{})
			require.NoError(b, err)
			work := func(_ int, in prefetch.Batch, out prefetch.Fields) error {
				return in.Stream().CopyD2D(out.Field("x").View, in.Field("x").View)
			}
			b.ReportAllocs()
			left := b.N
			b.ResetTimer()
			for left > 0 {
				for _, err := range p.Map(context.Background(), prefetch.Output{Fields: data.Fields()}, work) {
					if err != nil {
						b.Fatal(err)
					}
					if left--; left <= 0 {
						break
					}
				}
			}
			b.StopTimer()
			require.NoError(b, p.Close())
		})
	}
}
