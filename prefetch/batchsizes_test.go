package prefetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// stepShape is where a batch begins, and its rows.
type stepShape struct {
	epoch int
	first int64
	rows  int
}

// stepShapes are the batches that a loader of one rank should make under Keep, worked out from
// its options sample by sample.
func stepShapes(n int64, batchSize int, o loader.Options) (all []stepShape) {
	inside := func(epoch int, at int64) bool {
		for _, e := range o.Exclude {
			for _, s := range e.Steps {
				if epoch == s.From.Epoch && at >= s.From.Position && at < s.To.Position {
					return true
				}
			}
		}
		return false
	}
	for epoch := range o.Epochs {
		for at := int64(0); at < n; {
			if inside(epoch, at) {
				at++
				continue
			}
			size := batchSize
			for _, s := range o.BatchSizes {
				if int64(epoch)*n+at >= s.Sample {
					size = s.BatchSize
				}
			}
			rows := min(int64(size), n-at)
			all = append(all, stepShape{epoch, at, int(rows)})
			at += rows
		}
	}
	return all
}

// drawSteps draws batch sizes that change, and steps that are jumped over.
func drawSteps(t *rapid.T) (n, batchSize int, o loader.Options) {
	n, batchSize = rapid.IntRange(12, 60).Draw(t, "samples"), rapid.IntRange(1, 5).Draw(t, "batch")
	o = loader.Options{Seed: rapid.Uint64().Draw(t, "seed"), Shuffle: true, Epochs: rapid.IntRange(1, 3).Draw(t, "epochs"), Workers: 2}
	at := int64(0)
	for range rapid.IntRange(0, 3).Draw(t, "sizes") {
		at += int64(rapid.IntRange(1, 40).Draw(t, "sample"))
		o.BatchSizes = append(o.BatchSizes, loader.SizeFrom{Sample: at, BatchSize: rapid.IntRange(1, 7).Draw(t, "size")})
	}
	if rapid.Bool().Draw(t, "jump") { // whole steps, so that no row is another sample
		all := stepShapes(int64(n), batchSize, o)
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "step")]
		if s.rows < n {
			span := loader.Span{
				From: loader.Cursor{Epoch: s.epoch, Position: s.first},
				To:   loader.Cursor{Epoch: s.epoch, Position: s.first + int64(s.rows)},
			}
			o.Exclude = []loader.Exclusion{{Steps: []loader.Span{span}}}
		}
	}
	return n, batchSize, o
}

func TestBatchSizesAndJumpsThroughThePipeline(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, batchSize, lo := drawSteps(rt)
		data := canary{n: n, width: 5}
		po := prefetch.Options{
			Depth: rapid.IntRange(1, 4).Draw(rt, "depth"), BatchesPerCopy: rapid.IntRange(1, 4).Draw(rt, "batchesPerCopy"),
			Memory: prefetch.Memory{HostSlots: rapid.IntRange(1, 5).Draw(rt, "hostSlots")},
		}
		if rapid.Bool().Draw(rt, "transform") {
			po.Transform = passOn(cpuSpin, time.Millisecond, data)
		}
		stops := rapid.SliceOfN(rapid.IntRange(1, 8), 0, 4).Draw(rt, "stops")
		ways := rapid.SliceOfN(rapid.SampledFrom([]string{"break", "cancel", "seek", "restore"}), 5, 5).Draw(rt, "ways")
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, data, cpu.Options{}, batchSize, lo, po)
			var all []reading
			for i := 0; r.pf.Epoch() < lo.Epochs; i++ {
				stop := 1 << 30
				if i < len(stops) {
					stop = stops[i]
				}
				all = append(all, r.until(stop, ways[min(i, 4)])...)
			}
			require.NoError(t, r.dev.Synchronize(t.Context()))
			var got []stepShape
			for _, b := range all {
				got = append(got, stepShape{b.at.Epoch, b.at.First, b.rows})
				require.NoError(t, r.verify(b))
			}
			require.Equal(t, stepShapes(int64(n), batchSize, lo), got)
			r.close()
		})
	})
}

func TestMapOverBatchSizesThatChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, batchSize, lo := drawSteps(rt)
		data := canary{n: n, width: 5}
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, data, cpu.Options{}, batchSize, lo, prefetch.Options{BatchesPerCopy: 3})
			var seen []stepShape
			for epoch := range lo.Epochs {
				for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, r.echo(always(time.Millisecond))) {
					require.NoError(t, err)
					b := got(res)
					require.NoError(t, r.verify(b))
					require.Equal(t, epoch, b.at.Epoch)
					seen = append(seen, stepShape{b.at.Epoch, b.at.First, b.rows})
				}
			}
			require.Equal(t, stepShapes(int64(n), batchSize, lo), seen)
			r.close()
		})
	})
}
