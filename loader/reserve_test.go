package loader

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
)

// costly is a dataset whose samples do something.
type costly struct {
	n    int
	read func()
}

func (d costly) Len() int        { return d.n }
func (d costly) Fields() []Field { return []Field{{Name: "x", DType: dtype.Uint8}} }
func (d costly) Read(_ context.Context, _ int, row *Row) error {
	d.read()
	row.Bytes("x")[0] = 1
	return nil
}

// Who stands aside waits for a call. Calls come after pauses, which grow while who is
// called finds no room; once all find room, each call is for twice as many.
func TestTheReserveIsCalledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reserve
		var begun atomic.Int32
		begun.Store(1000)
		r.init(0, &begun)
		aside := func(n int) {
			for range n {
				go r.standAside(time.Now())
			}
			synctest.Wait()
		}
		called := func() int {
			before := r.aside.Load()
			r.call(time.Now())
			synctest.Wait()
			return int(before - r.aside.Load())
		}
		aside(20)
		for _, pause := range []time.Duration{5, 10, 20, 40, 80, 160, 160} {
			time.Sleep(pause*time.Millisecond - 1)
			require.Zero(t, called())
			time.Sleep(time.Nanosecond)
			require.Equal(t, 1, called())
			aside(1) // there was no room
		}
		time.Sleep(longPause)
		require.Equal(t, 1, called())
		time.Sleep(longPause)
		for _, n := range []int{2, 4, 8, 5} {
			require.Equal(t, n, called())
			require.Zero(t, called())
			time.Sleep(shortPause)
		}
		require.Zero(t, called())
		aside(3)
		r.end()
		synctest.Wait()
		require.Zero(t, r.aside.Load())
		aside(1) // returns at once
	})
}

// Reads that wait take all workers that there are by default.
func TestReadsThatWaitHaveManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(costly{400, func() { time.Sleep(5 * time.Millisecond) }}, 16, Options{Epochs: 1})
		require.NoError(t, err)
		mem, err := NewHeap(l.Layout().Size(), 16)
		require.NoError(t, err)
		began := time.Now()
		run := l.Start(t.Context(), Cursor{}, mem)
		for err == nil {
			var f Filled
			if f, err = run.Next(t.Context()); err == nil {
				mem.Put(f.Slot)
			}
		}
		require.Equal(t, ErrEpochEnd, err)
		rounds := (400 + l.staff.first - 1) / l.staff.first
		require.Equal(t, time.Duration(rounds)*5*time.Millisecond, time.Since(began))
		require.NoError(t, run.Close())
	})
}

// Reads that compute fill the processors, and then workers stand aside; a stated number
// of workers never does.
func TestWorkersStandAsideWhereProcessorsAreFull(t *testing.T) {
	compute := func() {
		for began := time.Now(); time.Since(began) < 200*time.Microsecond; {
		}
	}
	for _, workers := range []int{0, 40} {
		l, err := New(costly{1 << 30, compute}, 16, Options{Workers: workers})
		require.NoError(t, err)
		mem, err := NewHeap(l.Layout().Size(), 256)
		require.NoError(t, err)
		run := l.Start(t.Context(), Cursor{}, mem)
		batches, aside := 0, func() bool { return run.reserve.aside.Load() > 0 }
		for !aside() && (workers == 0 || batches < 50) {
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			mem.Put(f.Slot)
			batches++
		}
		require.Equal(t, workers == 0, aside())
		require.NoError(t, run.Close())
	}
}

// A short wait for a processor beside a long read makes nobody stand aside, and no wait is
// borne that the consumer would notice.
func TestAWaitForAProcessorIsSetAgainstTheRead(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: crowded, 50 * time.Microsecond: crowded, 800 * time.Microsecond: crowded,
		5 * time.Millisecond: 625 * time.Microsecond, time.Second: 2 * time.Millisecond,
	} {
		require.Equal(t, want, bearable(took), "%v", took)
	}
}
