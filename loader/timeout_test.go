package loader_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// scribble writes what no sample has to all of a row.
func scribble(row *loader.Row) {
	for _, f := range numberFields {
		b := row.Bytes(f.Name)
		for i := range b {
			b[i] = 0xee
		}
	}
}

// unreadableAt fails the sample of an index at once.
func unreadableAt(index int) func(context.Context, int, *loader.Row) error {
	return func(_ context.Context, i int, _ *loader.Row) error {
		if i == index {
			return errors.New("unreadable")
		}
		return nil
	}
}

// withoutCauses are batches without the reasons for substitutions.
func withoutCauses(batches []batch) []batch {
	for _, b := range batches {
		for i := range b.filled.Substituted {
			b.filled.Substituted[i].Err = nil
		}
	}
	return batches
}

func TestASampleThatHangsIsSubstitutedInTime(t *testing.T) {
	const n, late = 1000, 137
	o := loader.Options{Shuffle: true, Seed: 2, Epochs: 1, OnError: loader.Substitute, ReadTimeout: time.Second, GracePeriod: time.Minute}
	want, err := readAll(t, newNumbers(t, numbers{n: n, before: unreadableAt(late)}, 10, o), loader.Cursor{}, 3)
	require.NoError(t, err)
	for name, end := range map[string]func(){
		"returns": func() {}, "panics": func() { panic("late") }, "ends its goroutine": runtime.Goexit,
	} {
		for _, o.Workers = range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/workers=%d", name, o.Workers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					var returned atomic.Bool
					before := func(_ context.Context, i int, row *loader.Row) error {
						if i == late {
							time.Sleep(time.Hour)
							scribble(row)
							returned.Store(true)
							end()
						}
						return nil
					}
					l := newNumbers(t, numbers{n: n, before: before}, 10, o)
					mem := newLedger(t, l, 3)
					run := l.Start(t.Context(), loader.Cursor{}, mem)
					got, err := readEpoch(l, run, mem.Heap)
					require.Equal(t, loader.ErrEpochEnd, err)
					require.Equal(t, time.Second, time.Since(began))
					for _, b := range got {
						for _, s := range b.filled.Substituted {
							require.Equal(t, late, s.Sample)
							var timeout *loader.TimeoutError
							require.ErrorAs(t, s.Err, &timeout)
							require.Equal(t, time.Second, timeout.Timeout)
							require.Equal(t, 1, timeout.Late)
							require.Contains(t, string(timeout.Stack), "TestASampleThatHangsIsSubstitutedInTime")
							require.ErrorContains(t, s.Err, "timeout_test.go", "the place in the user's code")
						}
					}
					require.Equal(t, withoutCauses(want), withoutCauses(got))

					require.NoError(t, run.Close(), "nobody waits for the late one, which has no slot")
					require.Equal(t, time.Second, time.Since(began))
					require.False(t, returned.Load())
					require.Equal(t, 3, mem.Free())
					require.Empty(t, mem.quarantined)

					time.Sleep(time.Hour)
					synctest.Wait() // and the bubble has no goroutine left
					require.True(t, returned.Load())
				})
			})
		}
	}
}

func TestALateReadIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var causes []error
		before := func(ctx context.Context, i int, _ *loader.Row) error {
			if i%3 == 1 {
				<-ctx.Done()
				causes = append(causes, context.Cause(ctx))
				return ctx.Err()
			}
			return ctx.Err()
		}
		l := newNumbers(t, numbers{n: 30, before: before}, 5, loader.Options{
			Epochs: 1, Workers: 1, OnError: loader.Substitute, ReadTimeout: time.Second, Seed: 1,
		})
		got, err := readAll(t, l, loader.Cursor{}, 2)
		require.NoError(t, err, "whoever heeds the context ends before Close, which has nothing to tell")
		for _, b := range got {
			for row, index := range b.indices {
				require.NotEqual(t, int64(1), index%3, "row %d", row)
			}
		}
		require.GreaterOrEqual(t, len(causes), 10)
		for _, err := range causes {
			var timeout *loader.TimeoutError
			require.ErrorAs(t, err, &timeout)
		}
	})
}

func TestASampleThatHangsFailsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, i int, _ *loader.Row) error {
			if i == 37 {
				<-ctx.Done()
			}
			return nil
		}
		l := newNumbers(t, numbers{n: 100, before: hang}, 10, loader.Options{Epochs: 1, ReadTimeout: time.Second})
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		began := time.Now()
		batches, err := readEpoch(l, run, mem)
		require.Len(t, batches, 3)
		require.Equal(t, time.Second, time.Since(began))
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 37, failure.Sample)
		require.Equal(t, loader.StageRead, failure.Stage)
		var timeout *loader.TimeoutError
		require.ErrorAs(t, err, &timeout)
		require.Contains(t, fmt.Sprintf("%+v", err), "goroutine ")
		require.NoError(t, run.Close())
		require.Equal(t, 3, mem.Free())
	})
}

// Whatever Read does in time is as it is without a limit; whatever takes longer is as if it
// had failed.
func TestATimeLimitChangesNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, batchSize := rapid.IntRange(1, 40).Draw(rt, "samples"), rapid.IntRange(1, 7).Draw(rt, "batch")
		o := loader.Options{
			Shuffle: true, Seed: rapid.Uint64().Draw(rt, "seed"), Epochs: 1, GracePeriod: time.Minute,
			Workers: rapid.IntRange(1, 5).Draw(rt, "workers"), OnError: rapid.SampledFrom([]loader.ErrorPolicy{loader.Fail, loader.Substitute}).Draw(rt, "policy"),
		}
		ends := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "", "slow", "error", "panic", "late", "ignores", "goexit"}), n, n).Draw(rt, "ends")
		slots := rapid.IntRange(1, 4).Draw(rt, "slots")
		read := func(timed bool) (batches []batch, err error) {
			before := func(ctx context.Context, i int, row *loader.Row) error {
				switch ends[i] {
				case "slow":
					time.Sleep(500 * time.Millisecond)
				case "error":
					return errors.New("bad")
				case "panic":
					panic("bad")
				case "goexit":
					runtime.Goexit()
				case "late", "ignores":
					switch {
					case !timed:
						return errors.New("late")
					case ends[i] == "late":
						<-ctx.Done()
						return ctx.Err()
					}
					time.Sleep(10 * time.Second)
					scribble(row)
				}
				return nil
			}
			if timed {
				o.ReadTimeout = time.Second
			}
			synctest.Test(t, func(t *testing.T) {
				l := newNumbers(t, numbers{n: n, before: before}, batchSize, o)
				mem := heap(t, l, slots)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				batches, err = readEpoch(l, run, mem)
				if err := run.Close(); err != nil {
					var late *loader.PanicError
					require.ErrorAs(t, err, &late, "of a sample behind the one that failed")
				}
				require.Equal(t, slots, mem.Free())
				time.Sleep(time.Hour) // until what is late has returned
			})
			return withoutCauses(batches), err
		}
		want, wantErr := read(false)
		got, err := read(true)
		require.Equal(rt, want, got)
		var failure, wantFailure *loader.Error
		require.Equal(rt, errors.As(wantErr, &wantFailure), errors.As(err, &failure))
		if failure != nil {
			require.Equal(rt, wantFailure.Position, failure.Position)
			require.Equal(rt, wantFailure.Sample, failure.Sample)
		}
	})
}

func TestTooManyLateReadsEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		before := func(_ context.Context, i int, _ *loader.Row) error {
			if i >= 500 {
				<-release
			}
			return nil
		}
		l := newNumbers(t, numbers{n: 1000, before: before}, 10, loader.Options{
			Epochs: 1, Workers: 4, OnError: loader.Substitute, ReadTimeout: time.Second, GracePeriod: time.Second,
		})
		mem := newLedger(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		batches, err := readEpoch(l, run, mem.Heap)
		require.GreaterOrEqual(t, len(batches), 50)
		var timeout *loader.TimeoutError
		require.ErrorAs(t, err, &timeout)
		require.ErrorContains(t, err, "Reads are late at once, more than 64")
		require.Less(t, runtime.NumGoroutine(), 100)

		require.NoError(t, run.Close())
		require.Equal(t, 3, mem.Free())
		close(release)
	})
}

func TestStallTimeoutEndsTheRunBesideReadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, i int, _ *loader.Row) error {
			if i == 37 {
				<-ctx.Done()
			}
			return nil
		}
		l := newNumbers(t, numbers{n: 100, before: hang}, 10, loader.Options{
			Epochs: 1, ReadTimeout: time.Minute, StallTimeout: time.Second, Workers: 2,
		})
		run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 10))
		for range 3 {
			_, err := run.Next(t.Context())
			require.NoError(t, err)
		}
		_, err := run.Next(t.Context())
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 37, failure.Sample)
		var stall *loader.StallError
		require.ErrorAs(t, err, &stall)
		require.Contains(t, string(stall.Stack), "TestStallTimeoutEndsTheRunBesideReadTimeout.func", "of the Read, not of who waits for it")
		require.NoError(t, run.Close())
	})
}

func TestCloseWhileReadsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := func(_ context.Context, i int, _ *loader.Row) error {
			if i >= 5 {
				time.Sleep(time.Hour) // ignores its context
			}
			return nil
		}
		l := newNumbers(t, numbers{n: 100, before: before}, 5, loader.Options{
			Epochs: 1, Workers: 2, ReadTimeout: 2 * time.Second, GracePeriod: time.Second, OnError: loader.Substitute,
		})
		for range 4 { // half a second after its begin, and one, and so on
			mem := newLedger(t, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			mem.Put(f.Slot)
			time.Sleep(500 * time.Millisecond)
			var stuck *loader.StuckError
			require.ErrorAs(t, run.Close(), &stuck)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			require.Equal(t, 3, mem.Free(), "what was quarantined came back")
		}
	})
}

func TestATimeLimitAllocatesNothingForASample(t *testing.T) {
	l := newNumbers(t, numbers{n: 1 << 20}, 64, loader.Options{ReadTimeout: time.Hour, Workers: 2})
	mem := heap(t, l, 4)
	run := l.Start(context.Background(), loader.Cursor{}, mem)
	next := func() {
		f, err := run.Next(context.Background())
		if err != nil {
			panic(err)
		}
		mem.Put(f.Slot)
	}
	for range 100 {
		next()
	}
	require.Zero(t, testing.AllocsPerRun(500, next))
	require.NoError(t, run.Close())
}

func TestATimeLimitKeepsLengths(t *testing.T) {
	fields := []loader.Field{{Name: "tokens", DType: dtype.Int32, Shape: []int{8}, Ragged: &loader.Ragged{Length: "lengths"}}}
	for _, timeout := range []time.Duration{0, time.Hour} {
		ds := loader.FromFunc(6, fields, func(_ context.Context, i int, row *loader.Row) error {
			tokens := make([]int32, i)
			for at := range tokens {
				tokens[at] = int32(i)
			}
			return loader.Write(row, "tokens", tokens...)
		})
		l, err := loader.New(ds, 3, loader.Options{Epochs: 1, ReadTimeout: timeout})
		require.NoError(t, err)
		mem := heap(t, l, 1)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for _, want := range [][]int32{{0, 1, 2}, {3, 4, 5}} {
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, values[int32](l, f, "lengths"))
			mem.Put(f.Slot)
		}
		require.NoError(t, run.Close())
	}
}

func TestReadTimeoutIsForDatasets(t *testing.T) {
	_, err := loader.New(numbers{n: 3}, 1, loader.Options{ReadTimeout: -1})
	require.Equal(t, []string{"ReadTimeout"}, options(err))
	_, err = loader.NewIterable(loader.FromSeqFunc(numberFields, each(upTo(3)), encodeNumber), 2, loader.Options{ReadTimeout: 1})
	require.Equal(t, []string{"ReadTimeout"}, options(err))
}

// BenchmarkReadTimeout tells what a limit costs: a hand-over to another goroutine and a
// copy, for each sample.
func BenchmarkReadTimeout(b *testing.B) {
	const samples, batch = 60000, 256
	ds := newImages(784, samples)
	for _, timeout := range []time.Duration{0, time.Minute} {
		for _, workers := range []int{1, 2, 16} {
			b.Run(fmt.Sprintf("timeout=%v/workers=%d", timeout, workers), func(b *testing.B) {
				l, err := loader.New(ds, batch, loader.Options{Workers: workers, Epochs: 1, ReadTimeout: timeout})
				require.NoError(b, err)
				mem, err := loader.NewHeap(l.Layout().Size(), benchmarkSlots)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					fillEpoch(b, l, mem)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*samples), "ns/sample")
			})
		}
	}
}
