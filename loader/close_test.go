package loader_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// ledger is a Heap that notes what is quarantined.
type ledger struct {
	*loader.Heap
	mu          sync.Mutex
	quarantined map[int]error
}

func newLedger(t require.TestingT, l *loader.Loader, slots int) *ledger {
	return &ledger{Heap: heap(t, l, slots), quarantined: map[int]error{}}
}

func (m *ledger) Quarantine(slot loader.Slot, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quarantined[slot.ID] = err
}

func TestARunThatIsNeverReadClosesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNumbers(t, numbers{n: 100}, 3, loader.Options{})
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		require.NoError(t, run.Close())
		require.NoError(t, run.Close())
		require.Equal(t, 2, mem.Free())
		_, err := run.Next(t.Context())
		require.Equal(t, loader.ErrClosed, err)
	})
}

func TestAThousandAbandonedRunsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		l := newNumbers(t, numbers{n: 1000}, 3, loader.Options{Workers: 3, Shuffle: true})
		mem := heap(t, l, 4)
		for i := range 1000 {
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			for range i % 5 {
				f, err := run.Next(t.Context())
				require.NoError(t, err)
				mem.Put(f.Slot)
			}
			require.NoError(t, run.Close())
			require.Equal(t, 4, mem.Free())
		}
	})
}

func TestAThousandShortEpochsInOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNumbers(t, numbers{n: 3}, 1, loader.Options{Epochs: 1000, Workers: 2})
		batches, err := readAll(t, l, loader.Cursor{}, 2)
		require.NoError(t, err)
		require.Len(t, batches, 3000)
	})
}

func TestCloseCancelsReadsThatHeedTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ int, _ *loader.Row) error {
			<-ctx.Done()
			return ctx.Err()
		}
		l := newNumbers(t, numbers{n: 10, before: hang}, 2, loader.Options{Workers: 3})
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, run.Close())
		require.Zero(t, time.Since(began))
		require.Equal(t, 2, mem.Free())
	})
}

func TestAProducerThatIgnoresItsContextCostsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(_ context.Context, index int, _ *loader.Row) error {
			if index == 7 {
				time.Sleep(time.Hour)
			}
			return nil
		}
		l := newNumbers(t, numbers{n: 100, before: sleep}, 5, loader.Options{
			Workers: 2, GracePeriod: 2 * time.Second,
		})
		mem := newLedger(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		f, err := run.Next(t.Context())
		require.NoError(t, err)
		mem.Put(f.Slot)
		synctest.Wait()
		began := time.Now()
		err = run.Close()
		require.Equal(t, 2*time.Second, time.Since(began))
		var stuck *loader.StuckError
		require.ErrorAs(t, err, &stuck)
		require.Equal(t, 7, stuck.Sample)
		require.EqualValues(t, 7, stuck.Position)
		require.Equal(t, 1, stuck.Batch)
		require.Equal(t, loader.StageRead, stuck.Stage)
		require.Contains(t, string(stuck.Stack), "time.Sleep")
		require.Regexp(t, `sample 7 .* ignored its context for 2s \(at .*close_test\.go:\d+\)$`, stuck.Error(), "one line")
		require.Equal(t, err, run.Close(), "as before")
		require.Equal(t, 2, mem.Free())
		require.Len(t, mem.quarantined, 1)
		for _, reason := range mem.quarantined {
			require.ErrorAs(t, reason, &stuck)
		}
		time.Sleep(time.Hour) // the sleeper wakes, and ends without touching anything else
		synctest.Wait()
		require.Equal(t, 3, mem.Free(), "its slot comes back")
	})
}

// The sleeper wakes long after its run, when the slots it was not in are
// somebody else's.
func TestAProducerThatWakesAfterCloseWritesToNoSlot(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			sleep := func(_ context.Context, index int, _ *loader.Row) error {
				if index == 0 {
					time.Sleep(time.Hour)
				}
				return nil
			}
			l := newNumbers(t, numbers{n: 100, before: sleep}, 2, loader.Options{Workers: 1})
			mem := newLedger(t, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			synctest.Wait()
			var stuck *loader.StuckError
			require.ErrorAs(t, run.Close(), &stuck)
			require.Equal(t, 2, mem.Free())
			var slots [2]loader.Slot
			for i := range slots {
				slots[i], _ = mem.Get(t.Context())
				clear(slots[i].Bytes)
			}
			time.Sleep(2 * time.Hour)
			for _, slot := range slots {
				require.Equal(t, make([]byte, len(slot.Bytes)), slot.Bytes)
			}
		})
	}
}

func TestMoreSlotsThanTheRunLooksAheadComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNumbers(t, numbers{n: 5000}, 1, loader.Options{Epochs: 1})
		mem := heap(t, l, 2000)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		synctest.Wait()
		require.Less(t, mem.Free(), 1000)
		require.NoError(t, run.Close())
		require.Equal(t, 2000, mem.Free())
	})
}

func TestNextGivesUpWithItsOwnContextAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, int, *loader.Row) error {
			time.Sleep(time.Minute)
			return nil
		}
		l := newNumbers(t, numbers{n: 3, before: slow}, 1, loader.Options{Workers: 1, Epochs: 1})
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		var got []int64
		for len(got) < 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			f, err := run.Next(ctx)
			cancel()
			if err != nil {
				require.Equal(t, context.DeadlineExceeded, err)
				continue
			}
			got = append(got, values[int64](l, f, "index")...)
			mem.Put(f.Slot)
		}
		require.Equal(t, []int64{0, 1, 2}, got)
		require.NoError(t, run.Close())
	})
}

func TestTheEndOfTheRunsContextIsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		l := newNumbers(t, numbers{n: 10}, 1, loader.Options{})
		mem := heap(t, l, 2)
		run := l.Start(ctx, loader.Cursor{}, mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		require.Equal(t, []int64{0}, b.indices)
		shutdown := errors.New("shutdown")
		cancel(shutdown)
		for range 2 {
			_, err = run.Next(t.Context())
			require.Equal(t, shutdown, err)
		}
		require.NoError(t, run.Close())
		require.Equal(t, 2, mem.Free())
	})
}

func TestCloseEndsANextThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ int, _ *loader.Row) error {
			<-ctx.Done()
			return ctx.Err()
		}
		l := newNumbers(t, numbers{n: 10, before: hang}, 2, loader.Options{})
		mem := heap(t, l, 1)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		result := make(chan error, 1)
		go func() {
			_, err := run.Next(context.Background())
			result <- err
		}()
		synctest.Wait()
		require.NoError(t, run.Close())
		require.Equal(t, loader.ErrClosed, <-result)
		require.Equal(t, 1, mem.Free())
	})
}

// memoryFails gives out as many slots as it has, and then an error.
type memoryFails struct {
	*loader.Heap
	left int
}

var errMemory = errors.New("no memory")

func (m *memoryFails) Get(ctx context.Context) (loader.Slot, error) {
	if m.left--; m.left < 0 {
		return loader.Slot{}, errMemory
	}
	return m.Heap.Get(ctx)
}

func TestAFailureOfTheMemoryComesAfterTheBatchesBefore(t *testing.T) {
	l := newNumbers(t, numbers{n: 100}, 2, loader.Options{})
	mem := &memoryFails{heap(t, l, 4), 3}
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	batches, err := readEpoch(l, run, mem.Heap)
	require.Len(t, batches, 3)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 3, failure.Batch)
	require.Equal(t, -1, failure.Sample)
	require.Equal(t, loader.StageSlot, failure.Stage)
	require.ErrorIs(t, err, errMemory)
	require.NoError(t, run.Close())
	require.Equal(t, 4, mem.Free())
}

// Wherever a run stops, by break, failure or cancel, each slot is back.
func TestStoppingAnywhereReturnsEverySlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, slots := rapid.IntRange(1, 50).Draw(t, "n"), rapid.IntRange(1, 8).Draw(t, "slots")
		ds := numbers{n: n}
		if rapid.Bool().Draw(t, "fails") {
			ds.before = failAt(rapid.IntRange(0, n-1).Draw(t, "bad"))
		}
		l := newNumbers(t, ds, rapid.IntRange(1, 9).Draw(t, "batch"), loader.Options{
			Workers: rapid.IntRange(1, 8).Draw(t, "workers"), Epochs: 2,
		})
		mem := heap(t, l, slots)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		run := l.Start(ctx, loader.Cursor{}, mem)
		for range rapid.IntRange(0, 60).Draw(t, "stop") {
			if _, err := read(l, run, mem); err != nil && err != loader.ErrEpochEnd {
				break
			}
		}
		if rapid.Bool().Draw(t, "cancel") {
			cancel()
		}
		require.NoError(t, run.Close())
		require.Equal(t, slots, mem.Free())
	})
}

// A Read that hung, and returns when Close has given up on it, is the last: what the
// dataset reads from may be gone by then.
func TestAWorkerThatWasStuckReadsNoOtherSample(t *testing.T) {
	for _, iterable := range []bool{false, true} {
		var closed atomic.Bool
		var reads, after atomic.Int64
		entered, goOn, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
		read := func() {
			if closed.Load() {
				after.Add(1)
			}
			if reads.Add(1) == 200_001 { // by now it is known that samples cost next to nothing
				close(entered)
				<-goOn
				close(left)
			}
		}
		o := loader.Options{Workers: 1, GracePeriod: 50 * time.Millisecond}
		var l *loader.Loader
		var err error
		if iterable {
			source := newLive(1 << 18)
			l, err = loader.NewIterable(loader.FromSeq(hookedFields, source.seq, func(_ context.Context, n int, row *loader.Row) error {
				read()
				return loader.Write(row, "n", int64(n))
			}), 4096, o)
		} else {
			l, err = loader.New(hooked{n: 1 << 18, read: read}, 4096, o)
		}
		require.NoError(t, err)
		mem := heap(t, l, 4)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		for {
			f, err := run.Next(ctx)
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				break
			}
			mem.Put(f.Slot)
		}
		var stuck *loader.StuckError
		require.ErrorAs(t, run.Close(), &stuck)
		closed.Store(true)
		close(goOn)
		<-left
		for mem.Free() < 4 { // the slot comes back when the worker has ended
			time.Sleep(time.Millisecond)
		}
		require.Zero(t, after.Load())
		require.NoError(t, l.Close())
	}
}

var hookedFields = []loader.Field{{Name: "n", DType: dtype.Int64}}

// hooked is a dataset of numbers whose Reads are seen.
type hooked struct {
	n    int
	read func()
}

func (h hooked) Len() int               { return h.n }
func (h hooked) Fields() []loader.Field { return hookedFields }
func (h hooked) Read(_ context.Context, i int, row *loader.Row) error {
	h.read()
	return loader.Write(row, "n", int64(i))
}
