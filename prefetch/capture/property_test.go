package capture_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// A piece is one call of a random step, on memory that steps share.
type piece struct {
	kind     int // of work
	from, to int // buffers; from 2 is the batch
	side     bool
}

// A random step is pieces of work, some of them on a second stream that is forked off and
// joined. Whatever it is, and wherever the run stops and goes on, replays leave what
// launches do: on a device as unkind as the rules allow, with the order of everything
// checked and not.
func TestRandomStepsAreReplayedAsLaunched(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var pieces []piece
		for range rapid.IntRange(0, 8).Draw(rt, "pieces") {
			pieces = append(pieces, piece{
				kind: rapid.IntRange(0, 3).Draw(rt, "kind"), from: rapid.IntRange(0, 2).Draw(rt, "from"),
				to: rapid.IntRange(0, 1).Draw(rt, "to"), side: rapid.Bool().Draw(rt, "side"),
			})
		}
		batch := rapid.IntRange(1, 5).Draw(rt, "batch")
		n := rapid.IntRange(batch, 12*batch).Draw(rt, "n")
		c := setting{n: n, batch: batch,
			lo: loader.Options{Epochs: rapid.IntRange(1, 6).Draw(rt, "epochs"), Shuffle: true, Seed: rapid.Uint64().Draw(rt, "seed"),
				Last: rapid.SampledFrom([]loader.LastPolicy{loader.Exact, loader.Drop, loader.Pad}).Draw(rt, "last")},
			po: prefetch.Options{Depth: rapid.IntRange(1, 4).Draw(rt, "depth"), BatchesPerCopy: rapid.IntRange(1, 3).Draw(rt, "percopy")},
			co: cpu.Options{Adversary: unkind()}}
		stops := rapid.SliceOfN(rapid.IntRange(1, 20), 0, 4).Draw(rt, "stops")
		graphs := rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "graphs")
		want, report := random(t, c, pieces, nil, capture.Options{Launch: true})
		require.Zero(t, report.Captures)
		for _, c.checked = range []bool{false, true} {
			got, report := random(t, c, pieces, stops, capture.Options{Graphs: graphs})
			require.NoError(t, report.Reason)
			require.EqualValues(t, len(got), report.Captures+report.Replays+report.Launches)
			require.Equal(t, want, got)
		}
	})
}

// random trains by a random step, and stops behind so many batches each time.
func random(t *testing.T, c setting, pieces []piece, stops []int, o capture.Options) ([]uint64, capture.Report) {
	r := newRig(t, c)
	buffers := []*device.Buffer{r.scratch(width * 4 * 5), r.scratch(width * 4 * 5)}
	for _, b := range buffers {
		require.NoError(t, r.compute.Memset(b.View(), 1))
	}
	side, err := r.dev.NewStream(device.StreamOptions{Name: "side"})
	require.NoError(t, err)
	fork, err := r.dev.NewEvent(device.EventOptions{Name: "fork"})
	require.NoError(t, err)
	join, err := r.dev.NewEvent(device.EventOptions{Name: "join"})
	require.NoError(t, err)
	r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
		views := []device.View{buffers[0].View(), buffers[1].View(), b.Field("x").View}
		for _, p := range pieces {
			if err := p.submit(s, side, fork, join, views, params); err != nil {
				return err
			}
		}
		x := views[len(pieces)%2]
		err := launch(s, update, func(a *device.Args) {
			r.w.View().InOut(a)
			x.In(a)
			params.In(a)
		})
		return errors.Join(err, r.good(s, b, params))
	}
	step := r.step(o)
	n := 0
	for _, most := range append(stops, -1) {
		more, err := r.train(step, n, most)
		require.NoError(t, err)
		n += more
	}
	log, report := r.digests(n), step.Report()
	require.NoError(t, step.Close())
	require.NoError(t, errors.Join(buffers[0].Close(), buffers[1].Close(), side.Close(), fork.Close(), join.Close()))
	r.close()
	return log, report
}

// submit submits the piece to s, or to a stream that is forked off it and joined again.
func (p piece) submit(s, side *device.Stream, fork, join *device.Event, views []device.View, params device.View) error {
	on := s
	if p.side {
		if err := errors.Join(s.Record(fork), side.Wait(fork)); err != nil {
			return err
		}
		on = side
	}
	size := min(views[p.from].Size(), views[p.to].Size())
	from, to := views[p.from].Slice(0, size), views[p.to].Slice(0, size)
	var err error
	switch {
	case p.kind == 0:
		err = on.Memset(to, byte(p.from))
	case p.kind == 1 && p.from != p.to:
		err = on.CopyD2D(to, from)
	case p.kind == 2 && p.from != p.to:
		err = launch(on, scale, func(a *device.Args) {
			to.Out(a)
			from.In(a)
			a.AddFloat32(0.5)
		})
	default:
		err = launch(on, update, func(a *device.Args) {
			to.InOut(a)
			params.In(a)
			params.In(a)
		})
	}
	if p.side {
		err = errors.Join(err, side.Record(join), s.Wait(join))
	}
	return err
}
