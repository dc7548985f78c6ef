package loader_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
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

// live is a source of the numbers from 0 to n-1 that gives each once, whoever ranges
// over it, and counts what becomes of them.
type live struct {
	n       int
	given   int // only the iterator's
	encoded []atomic.Int32
	ended   atomic.Bool
	fail    func(n int) error
}

func newLive(n int) *live { return &live{n: n, encoded: make([]atomic.Int32, n)} }

func (l *live) seq(yield func(int, error) bool) {
	defer l.ended.Store(true)
	for l.given < l.n {
		l.given++
		if !yield(l.given-1, nil) {
			return
		}
	}
}

func (l *live) encode(ctx context.Context, n int, row *loader.Row) error {
	l.encoded[n].Add(1)
	if l.fail != nil {
		if err := l.fail(n); err != nil {
			return err
		}
	}
	writeNumber(n, row)
	return nil
}

func (l *live) loader(t require.TestingT, batchSize int, o loader.Options) *loader.Loader {
	ld, err := loader.NewIterable(loader.FromSeq(numberFields, l.seq, l.encode), batchSize, o)
	require.NoError(t, err)
	return ld
}

// What was read ahead of a Run that is closed is the next one's, from where the last
// left off: every sample is delivered once and encoded once, however often the reading
// is broken off.
func TestASourceOfOnePassLosesNothingWhenARunIsClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, slots := rapid.IntRange(1, 200).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "slots")
		source := newLive(n)
		o := loader.Options{Workers: rapid.IntRange(1, 4).Draw(t, "workers"), Epochs: 1}
		l := source.loader(t, rapid.IntRange(1, 9).Draw(t, "batch"), o)
		var all []int64
		for at, ended := (loader.Cursor{}), false; !ended; {
			mem := heap(t, l, slots)
			run := l.Start(context.Background(), at, mem)
			for range rapid.IntRange(0, 5).Draw(t, "batches") {
				b, err := read(l, run, mem)
				if ended = errors.Is(err, loader.ErrEpochEnd); ended {
					break
				}
				require.NoError(t, err)
				require.EqualValues(t, len(all), b.filled.Position)
				all, at = append(all, b.indices...), b.filled.After
			}
			require.NoError(t, run.Close())
			require.Equal(t, slots, mem.Free())
		}
		require.Len(t, all, n)
		for i := range all {
			require.EqualValues(t, i, all[i])
			require.EqualValues(t, 1, source.encoded[i].Load())
		}
		require.True(t, source.ended.Load())
		require.NoError(t, l.Close())
	})
}

// A second pass, wherever it is asked for, is refused by type, and takes nothing from
// the first.
func TestASecondPassOverASourceOfOnePassIsRefused(t *testing.T) {
	it := loader.FromSeq(numberFields, newLive(20).seq, encodeNumber)
	var option *loader.OptionError
	_, err := loader.NewIterable(it, 4, loader.Options{Epochs: 2})
	require.ErrorAs(t, err, &option)
	require.Equal(t, "Epochs", option.Option)
	_, err = loader.NewIterable(it, 4, loader.Options{Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Count: 2}})
	require.ErrorAs(t, err, &option)
	require.Equal(t, "Shard.Count", option.Option)

	l, err := loader.NewIterable(it, 4, loader.Options{})
	require.NoError(t, err)
	second, err := loader.NewIterable(it, 5, loader.Options{})
	require.NoError(t, err)
	refused := func(l *loader.Loader, at loader.Cursor, stands loader.Cursor) {
		t.Helper()
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), at, mem)
		for range 2 {
			_, err := run.Next(t.Context())
			var once *loader.OnePassError
			require.ErrorAs(t, err, &once)
			require.Equal(t, stands, once.At)
			require.Equal(t, at, once.Want)
		}
		require.NoError(t, run.Close())
		require.Equal(t, 2, mem.Free())
	}
	refused(l, loader.Cursor{Position: 4}, loader.Cursor{})
	refused(l, loader.Cursor{Epoch: 1}, loader.Cursor{})
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	b, err := read(l, run, mem)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 2, 3}, b.indices)
	refused(l, b.filled.After, b.filled.After)      // while the other goes on
	refused(second, b.filled.After, b.filled.After) // by way of another Loader, too
	require.NoError(t, run.Close())

	var once *loader.OnePassError
	state := l.StateAt(b.filled.After)
	require.NoError(t, l.Check(state))
	state.Position = 0
	require.ErrorAs(t, l.Check(state), &once)
	refused(second, loader.Cursor{}, b.filled.After)

	// Without a number of epochs it has one all the same.
	run = l.Start(t.Context(), b.filled.After, mem)
	batches, err := readEpoch(l, run, mem)
	require.Equal(t, loader.ErrEpochEnd, err)
	require.Len(t, batches, 4)
	_, err = read(l, run, mem)
	require.Equal(t, loader.ErrEnd, err)
	require.Equal(t, 1, l.Options().Epochs)
	require.NoError(t, run.Close())
	require.NoError(t, l.Close())
	refused(l, loader.Cursor{Epoch: 1}, loader.Cursor{Epoch: 1})
}

// Who hides from the loader that a source has one pass has one pass all the same.
func TestAWrappedSourceOfOnePassHasOnePass(t *testing.T) {
	for _, epochs := range []int{1, 2} {
		l, err := loader.NewIterable(wrapped{loader.FromSeq(numberFields, newLive(20).seq, encodeNumber)},
			4, loader.Options{Epochs: epochs})
		require.NoError(t, err)
		batches, err := readAll(t, l, loader.Cursor{}, 3)
		var once *loader.OnePassError
		if epochs == 1 {
			require.NoError(t, err)
			_, err = readAll(t, l, loader.Cursor{Position: 4}, 3)
		}
		require.Len(t, batches, 5)
		require.ErrorAs(t, err, &once)
	}
}

type wrapped struct{ loader.Iterable }

// A sample that cannot be encoded, and an error of the iterator's, are reported once,
// and what is behind them is delivered.
func TestASourceOfOnePassGoesOnBehindAFailure(t *testing.T) {
	malformed := errors.New("malformed")
	whole, err := readAll(t, newLive(20).loader(t, 4, loader.Options{}), loader.Cursor{}, 3)
	require.NoError(t, err)
	for name, bad := range map[string][]int{"one": {9}, "in one batch": {9, 10, 11}, "first": {0}, "last": {19}, "all": {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}} {
		for _, inIterator := range []bool{false, true} {
			for _, kind := range []string{"error", "panic", "goexit"} {
				if inIterator && kind != "error" {
					continue // it is over then
				}
				t.Run(name+"/"+kind, func(t *testing.T) {
					source := newLive(20)
					fail := func(n int) error {
						switch {
						case !slices.Contains(bad, n):
							return nil
						case kind == "panic":
							panic(malformed)
						case kind == "goexit":
							runtime.Goexit()
						}
						return malformed
					}
					seq := iter.Seq2[int, error](source.seq)
					if inIterator {
						seq = func(yield func(int, error) bool) {
							source.seq(func(n int, _ error) bool { return yield(n, fail(n)) })
						}
					} else {
						source.fail = fail
					}
					l, err := loader.NewIterable(loader.FromSeq(numberFields, seq, source.encode), 4, loader.Options{Epochs: 1, Workers: 2})
					require.NoError(t, err)
					var got []int64
					var all []batch
					failures, at := 0, loader.Cursor{}
					for {
						mem := heap(t, l, 3)
						run := l.Start(t.Context(), at, mem)
						batches, err := readEpoch(l, run, mem)
						require.NoError(t, run.Close())
						for _, b := range batches {
							got, all, at = append(got, b.indices...), append(all, b), b.filled.After
						}
						if errors.Is(err, loader.ErrEpochEnd) {
							break
						}
						var where *loader.Error
						require.ErrorAs(t, err, &where)
						if kind != "goexit" {
							require.ErrorIs(t, err, malformed)
						}
						failures++
						require.LessOrEqual(t, failures, len(bad))
					}
					require.Len(t, bad, failures)
					var want []int64
					for n := range 20 {
						if !slices.Contains(bad, n) {
							want = append(want, int64(n))
						}
					}
					require.Equal(t, want, got)
					for i, b := range all {
						require.Equal(t, whole[i].positions[:b.filled.N], b.positions)
						require.Equal(t, whole[i].random[:b.filled.N], b.random, "they are those of the position")
					}
					require.NoError(t, l.Close())
				})
			}
		}
	}
}

// A sample that moves up to the position of one that failed is encoded again if it was told
// its position, and only then: encode may have noted who waits for it.
func TestASampleThatMovesUpIsEncodedAgainIfItMustBe(t *testing.T) {
	field := []loader.Field{{Name: "at", DType: dtype.Int64}}
	for name, c := range map[string]struct {
		ask   func(row *loader.Row) int64
		want  []int64
		again bool
	}{
		"position": {ask: (*loader.Row).Position, want: []int64{0, 1}, again: true},
		"random":   {ask: func(row *loader.Row) int64 { return row.Rand().Int64() }, again: true},
		"nothing":  {ask: func(row *loader.Row) int64 { return 7 }, want: []int64{7, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls [3]atomic.Int32
			var others sync.WaitGroup
			others.Add(2)
			l, err := loader.NewIterable(loader.FromSeq(field, upTo(3), func(_ context.Context, n int, row *loader.Row) error {
				first := calls[n].Add(1) == 1
				if n == 0 {
					others.Wait() // the two behind it are encoded before it fails
					return errors.New("malformed")
				}
				if first {
					defer others.Done()
				}
				return loader.Write(row, "at", c.ask(row))
			}), 1, loader.Options{Workers: 3})
			require.NoError(t, err)
			mem := heap(t, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			_, err = run.Next(t.Context())
			require.ErrorContains(t, err, "malformed")
			require.NoError(t, run.Close())
			run = l.Start(t.Context(), loader.Cursor{}, mem)
			var got []int64
			for range 2 {
				b, err := run.Next(t.Context())
				require.NoError(t, err)
				got = append(got, values[int64](l, b, "at")...)
				mem.Put(b.Slot)
			}
			require.NoError(t, run.Close())
			require.NoError(t, l.Close())
			if c.want != nil {
				require.Equal(t, c.want, got)
			}
			require.Equal(t, c.again, calls[1].Load() == 2)
			require.Equal(t, c.again, calls[2].Load() == 2)
		})
	}
}

// What is wrong with the source as a whole is no sample's failure, and takes none: it is told
// alike by the next range.
func TestAFailureOfAWholeSourceTakesNoSample(t *testing.T) {
	for n, want := range map[int]struct {
		err  error
		says string
	}{0: {loader.ErrNoSamples, "gave none"}, 3: {loader.ErrTooFewSamples, "gave 3"}} {
		l, err := loader.NewIterable(loader.FromSeq(numberFields, upTo(n), encodeNumber), 4, loader.Options{Last: loader.Drop})
		require.NoError(t, err)
		mem := heap(t, l, 2)
		for range 2 {
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			_, err := run.Next(t.Context())
			require.ErrorIs(t, err, want.err)
			require.ErrorContains(t, err, want.says)
			require.NoError(t, run.Close())
		}
		require.NoError(t, l.Close())
	}
}

// A live source may have nothing to give for long: leaving it does not wait for it, and
// what comes in the meantime is kept.
func TestLeavingAnIdleSourceDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := make(chan int, 100)
		seq := func(yield func(int, error) bool) {
			for n := range queue {
				if !yield(n, nil) {
					return
				}
			}
		}
		l, err := loader.NewIterable(loader.FromSeq(numberFields, seq, encodeNumber), 2, loader.Options{Epochs: 1, Workers: 2})
		require.NoError(t, err)
		mem := heap(t, l, 3)
		var all []int64
		next, began := 0, time.Now()
		for range 10 {
			for range 5 {
				queue <- next
				next++
			}
			run := l.Start(t.Context(), loader.Cursor{Position: int64(len(all))}, mem)
			for len(all)+1 < next {
				b, err := read(l, run, mem)
				require.NoError(t, err)
				all = append(all, b.indices...)
			}
			synctest.Wait() // the iterator waits in the channel
			require.NoError(t, run.Close())
		}
		require.Zero(t, time.Since(began))
		require.Len(t, all, 50)
		require.IsIncreasing(t, all)

		var stuck *loader.StuckError
		require.ErrorAs(t, l.Close(), &stuck)
		require.Equal(t, loader.StageIterate, stuck.Stage)
		require.EqualValues(t, 50, stuck.Position)
		require.Contains(t, string(stuck.Stack), "TestLeavingAnIdleSourceDoesNotWait")
		require.NoError(t, l.Close(), "it is reported once")
		queue <- 50 // it is told at last
		synctest.Wait()
		close(queue)
	})
}

// A stall in the iterator is named as one, though it runs on a goroutine of its own.
func TestASourceThatStallsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		seq := func(yield func(int, error) bool) {
			upTo(6)(yield)
			<-release
		}
		l, err := loader.NewIterable(loader.FromSeq(numberFields, seq, encodeNumber),
			4, loader.Options{Epochs: 1, StallTimeout: time.Second})
		require.NoError(t, err)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		batches, err := readEpoch(l, run, mem)
		require.Len(t, batches, 1)
		var stall *loader.StallError
		require.ErrorAs(t, err, &stall)
		require.ErrorContains(t, err, "sample 6 (position 6): iterate")
		require.Contains(t, string(stall.Stack), "TestASourceThatStallsIsNamed")
		require.NoError(t, run.Close())

		close(release) // what was read before the stall is not lost by it
		run = l.Start(t.Context(), loader.Cursor{Position: 4}, mem)
		batches, err = readEpoch(l, run, mem)
		require.Equal(t, loader.ErrEpochEnd, err)
		require.Equal(t, []int64{4, 5}, indices(batches))
		require.NoError(t, run.Close())
		require.NoError(t, l.Close())
	})
}

// An encode that gives up because the Run is closed has not failed: another Run asks
// it again.
func TestAnEncodeThatHeedsItsContextIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		encode := func(ctx context.Context, n int, row *loader.Row) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
				writeNumber(n, row)
				return nil
			}
		}
		l, err := loader.NewIterable(loader.FromSeq(numberFields, newLive(12).seq, encode), 3, loader.Options{Epochs: 1, Workers: 2})
		require.NoError(t, err)
		mem := heap(t, l, 2)
		var all []int64
		for range 4 {
			run := l.Start(t.Context(), loader.Cursor{Position: int64(len(all))}, mem)
			b, err := read(l, run, mem)
			require.NoError(t, err)
			all = append(all, b.indices...)
			time.Sleep(500 * time.Millisecond) // in the middle of the next
			require.NoError(t, run.Close())
		}
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, all)
		require.NoError(t, l.Close())
	})
}

// A sample whose encode never returns is reported, and kept from the next Run: it must
// not be in two rows at once.
func TestASampleThatIsStuckIsNotGivenToAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		source := newLive(12)
		source.fail = func(n int) error {
			if n == 5 {
				<-release
			}
			return nil
		}
		l := source.loader(t, 4, loader.Options{Epochs: 1, Workers: 2, GracePeriod: time.Second})
		mem := newLedger(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := read(l, run, mem.Heap)
		require.NoError(t, err)
		synctest.Wait()
		var stuck *loader.StuckError
		require.ErrorAs(t, run.Close(), &stuck)
		require.Equal(t, 5, stuck.Sample)

		fresh := heap(t, l, 3)
		run = l.Start(t.Context(), b.filled.After, fresh)
		batches, err := readEpoch(l, run, fresh)
		require.Equal(t, loader.ErrEpochEnd, err)
		require.Equal(t, []int64{4, 6, 7, 8, 9, 10, 11}, indices(batches))
		require.NoError(t, run.Close())
		close(release)
		synctest.Wait()
		require.NoError(t, l.Close())
	})
}

func TestASourceOfOnePassAllocatesNothingInSteadyState(t *testing.T) {
	endless := func(yield func(int, error) bool) {
		for i := 0; yield(i, nil); i++ {
		}
	}
	l, err := loader.NewIterable(loader.FromSeq(numberFields, endless, encodeNumber), 16, loader.Options{Workers: 1})
	require.NoError(t, err)
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	next := func() {
		f, err := run.Next(context.Background())
		if err != nil {
			panic(err)
		}
		mem.Put(f.Slot)
	}
	for range 200 {
		next()
	}
	// Samples go through a sync.Pool; see above.
	require.Less(t, testing.AllocsPerRun(1000, next), 16.0)
	require.NoError(t, run.Close())
	require.NoError(t, l.Close())
}

// A failure of the memory is no sample's: none is dropped for it.
func TestASourceOfOnePassLosesNothingToItsMemory(t *testing.T) {
	source := newLive(12)
	l := source.loader(t, 2, loader.Options{Workers: 1, Epochs: 1})
	slots := heap(t, l, 2)
	mem := &failingMemory{Memory: slots, at: 3}
	var got []int64
	failures, at := 0, loader.Cursor{}
	for {
		run := l.Start(t.Context(), at, mem)
		batches, err := readEpoch(l, run, slots)
		require.NoError(t, run.Close())
		for _, b := range batches {
			got, at = append(got, b.indices...), b.filled.After
		}
		if errors.Is(err, loader.ErrEpochEnd) {
			break
		}
		require.ErrorIs(t, err, errMemory)
		failures++
		require.Equal(t, 1, failures)
	}
	require.Equal(t, 1, failures)
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, got)
}

// failingMemory fails its at-th Get.
type failingMemory struct {
	loader.Memory
	at, gets int
}

func (m *failingMemory) Get(ctx context.Context) (loader.Slot, error) {
	if m.gets++; m.gets == m.at {
		return loader.Slot{}, errMemory
	}
	return m.Memory.Get(ctx)
}
