package loader

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Workers retire and are taken again at any time, and every batch is filled.
func TestWorkersRetireAndComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(costly{20000, func() { time.Sleep(time.Millisecond) }}, 7, Options{Epochs: 1, Budget: Budget{Workers: 50}})
		require.NoError(t, err)
		mem, err := NewHeap(l.Layout().Size(), 12)
		require.NoError(t, err)
		run := l.Start(t.Context(), Cursor{}, mem)
		run.tuning.next.Store(int64(time.Hour)) // it has no say here
		done := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(rand.IntN(3000)) * time.Microsecond):
					run.lineup.allow(1 + rand.IntN(50))
				}
			}
		})
		rows := 0
		for err == nil {
			var f Filled
			if f, err = run.Next(t.Context()); err == nil {
				rows += f.N
				mem.Put(f.Slot)
			}
		}
		require.Equal(t, ErrEpochEnd, err)
		require.Equal(t, 20000, rows)
		run.lineup.allow(3)
		close(done)
		all.Wait()
		require.NoError(t, run.Close())
		require.Zero(t, run.live.Load())
		require.Equal(t, 12, mem.Free())
		require.LessOrEqual(t, run.crew.made.Load(), int32(50))
	})
}

// What one Run has found the next one begins with, and a part of a Loader finds its own.
func TestTheNextRunGoesOnWithAsManyWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // how many workers there are at first depends on it
	synctest.Test(t, func(t *testing.T) {
		l, err := New(costly{1 << 30, func() { time.Sleep(5 * time.Millisecond) }}, 64, Options{Last: Drop, Budget: Budget{Workers: 100}})
		require.NoError(t, err)
		mem, err := NewHeap(l.Layout().Size(), 8)
		require.NoError(t, err)
		pass := func(l *Loader, batches int) (first, last Stats) {
			run := l.Start(t.Context(), Cursor{}, mem)
			first = run.Stats()
			for range batches {
				f, err := run.Next(t.Context())
				require.NoError(t, err)
				mem.Put(f.Slot)
			}
			last = run.Stats()
			require.NoError(t, run.Close())
			return first, last
		}
		first, last := pass(l, 500)
		require.Equal(t, 32, first.Workers)
		// Which samples end within an interval is not the same each time: 20,000 a second or a few more.
		require.Regexp(t, `^100 → 100: kept: 100 workers read 2[01]\d{3} samples a second, 64 read 1[23]\d{3}$`, last.Decisions[3].String())
		first, _ = pass(l, 50)
		require.Equal(t, 100, first.Workers, "also if the last one ended in a trial")
		parts, err := l.Divide(2)
		require.NoError(t, err)
		first, _ = pass(parts[0], 1)
		require.Equal(t, 16, first.Workers)
	})
}

// Whoever stands aside waits for a call by one that goes on: so the last of these stays,
// also if there are more workers than are allowed.
func TestTheLastWorkerThatGoesOnStays(t *testing.T) {
	r := &Run{loader: &Loader{layout: &Layout{batch: 1}}}
	r.lineup.init(3, 3, &r.inspector, func() {})
	r.reserve.init(1, &r.lineup.begun)
	r.lineup.begun.Store(3)
	r.lineup.allow(1)
	r.reserve.aside.Store(2)
	w := &worker{run: r}
	require.False(t, r.reserve.retire(w))
	r.reserve.aside.Store(1)
	require.True(t, r.reserve.retire(w))
	require.False(t, r.reserve.retire(w))
	r.reserve.aside.Store(0)
	require.True(t, r.reserve.retire(w))
	require.False(t, r.reserve.retire(w), "as many as are allowed")
}
