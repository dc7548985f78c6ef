package loader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// stain fills every slot of mem with bytes that no sample has, as a lap before
// would leave them.
func stain(t *testing.T, mem *loader.Heap) {
	slots := make([]loader.Slot, mem.Free())
	for i := range slots {
		slot, err := mem.Get(t.Context())
		require.NoError(t, err)
		for i := range slot.Bytes {
			slot.Bytes[i] = 0xee
		}
		slots[i] = slot
	}
	for _, slot := range slots {
		mem.Put(slot)
	}
}

// failures are the ways in which user code fails.
var failures = map[string]func() error{
	"error":  func() error { return errors.New("unreadable") },
	"panic":  func() error { panic("unreadable") },
	"goexit": func() error { runtime.Goexit(); return nil },
}

// The remainder that Drop leaves out is read before anybody knows that it is one.
// Its failure comes before the drop, or behind it, when the next epoch's batches are
// open.
func TestAFailureInADroppedRemainderIsNoFailure(t *testing.T) {
	const epochs = 40
	for how, fail := range failures {
		for _, late := range []bool{false, true} {
			for _, workers := range []int{1, 3} {
				for _, slots := range []int{1, 2, 5} {
					t.Run(fmt.Sprintf("%s/late=%v/workers=%d/slots=%d", how, late, workers, slots), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							samples := func(yield func(int, error) bool) {
								for i := range 10 {
									if !yield(i, nil) {
										return
									}
								}
								if !late {
									time.Sleep(time.Second)
								}
							}
							encode := func(_ context.Context, n int, row *loader.Row) error {
								if n >= 8 {
									if late {
										time.Sleep(time.Second)
									}
									return fail()
								}
								time.Sleep(time.Millisecond)
								writeNumber(n, row)
								return nil
							}
							l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, each(samples), encode),
								4, loader.Options{Workers: workers, Last: loader.Drop, Epochs: epochs})
							require.NoError(t, err)
							batches, err := readAll(t, l, loader.Cursor{}, slots)
							require.NoError(t, err)
							require.Len(t, batches, 2*epochs)
							for i, b := range batches {
								require.Equal(t, i/2, b.filled.Epoch)
								first := int64(i % 2 * 4)
								require.Equal(t, []int64{first, first + 1, first + 2, first + 3}, b.indices)
							}
						})
					})
				}
			}
		}
	}
}

// meddler is a context whose Err does something first, once: it stands for what may
// happen while Next looks whether it is to go on.
type meddler struct {
	context.Context
	meanwhile func()
}

func (m *meddler) Err() error {
	if f := m.meanwhile; f != nil {
		m.meanwhile = nil
		f()
	}
	return m.Context.Err()
}

// A run that ends while Next is on its way to a batch: the workers give up the
// batch, and it must not be taken for a full one. over is the number of looks before
// the one during which the run ends.
func TestABatchThatACancelLeftUnreadIsNotDelivered(t *testing.T) {
	heeds := func(ctx context.Context, _ int, _ *loader.Row) error {
		<-ctx.Done()
		return ctx.Err()
	}
	substituted := func(ctx context.Context, index int, _ *loader.Row) error {
		if index == 0 {
			return errors.New("unreadable")
		}
		<-ctx.Done()
		return ctx.Err()
	}
	for name, c := range map[string]struct {
		read   func(context.Context, int, *loader.Row) error
		policy loader.ErrorPolicy
	}{
		"reads that heed it": {heeds, loader.Fail},
		"substitutes":        {substituted, loader.Substitute},
		"rows not begun": {func(ctx context.Context, index int, _ *loader.Row) error {
			if index%2 == 0 {
				<-ctx.Done()
			}
			return nil
		}, loader.Fail},
	} {
		for looks := range 3 {
			t.Run(fmt.Sprintf("%s/looks=%d", name, looks), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newNumbers(t, numbers{n: 64, before: c.read}, 32, loader.Options{Workers: 2, Epochs: 1, OnError: c.policy})
					mem := heap(t, l, 1)
					stain(t, mem)
					ctx, cancel := context.WithCancelCause(t.Context())
					run := l.Start(ctx, loader.Cursor{}, mem)
					synctest.Wait()
					shutdown := errors.New("shutdown")
					caller := &meddler{Context: t.Context()}
					end := func() { cancel(shutdown); synctest.Wait() }
					for range looks {
						next := end
						end = func() { caller.meanwhile = next }
					}
					caller.meanwhile = end
					time.AfterFunc(time.Hour, func() { cancel(shutdown) })
					_, err := run.Next(caller)
					require.Equal(t, shutdown, err)
					require.NoError(t, run.Close())
					require.Equal(t, 1, mem.Free())
				})
			})
		}
	}
}

func TestNoWorkerBeginsASampleAfterTheEnd(t *testing.T) {
	for name, tenth := range map[string]error{"good": nil, "bad": errors.New("unreadable")} {
		for _, policy := range []loader.ErrorPolicy{loader.Fail, loader.Substitute} {
			t.Run(fmt.Sprintf("%s/%v", name, policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var reads atomic.Int32
					ctx, cancel := context.WithCancel(t.Context())
					read := func(context.Context, int, *loader.Row) error {
						if reads.Add(1) == 10 {
							cancel()
							return tenth
						}
						return nil
					}
					l := newNumbers(t, numbers{n: 1 << 20, before: read}, 1<<16, loader.Options{Workers: 1, OnError: policy})
					run := l.Start(ctx, loader.Cursor{}, heap(t, l, 1))
					synctest.Wait()
					require.NoError(t, run.Close())
					require.EqualValues(t, 10, reads.Load())
				})
			})
		}
	}
}

// Each read is quick, though the claim it is in is not.
func TestQuickReadsAreNotCalledStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(context.Context, int, *loader.Row) error {
			time.Sleep(20 * time.Millisecond)
			return nil
		}
		l := newNumbers(t, numbers{n: 4096, before: read}, 512, loader.Options{Workers: 4, GracePeriod: time.Second})
		mem := heap(t, l, 4)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		time.Sleep(30 * time.Millisecond)
		began := time.Now()
		require.NoError(t, run.Close())
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		require.Equal(t, 4, mem.Free())
	})
}

// A sample that fails, by an error or a panic, whose substitute ends the goroutine.
func TestGoexitInASubstituteIsAFailure(t *testing.T) {
	for how, fail := range failures {
		if how == "goexit" {
			continue // has no substitute
		}
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/workers=%d", how, workers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var failed atomic.Bool
					read := func(_ context.Context, index int, _ *loader.Row) error {
						switch {
						case index == 2 && !failed.Swap(true):
							return fail()
						case failed.Load():
							runtime.Goexit()
						}
						return nil
					}
					l := newNumbers(t, numbers{n: 8, before: read}, 8, loader.Options{
						Workers: workers, Epochs: 1, OnError: loader.Substitute, Seed: 3})
					mem := heap(t, l, 1)
					stain(t, mem)
					run := l.Start(t.Context(), loader.Cursor{}, mem)
					_, err := run.Next(t.Context())
					var failure *loader.Error
					require.ErrorAs(t, err, &failure)
					require.ErrorContains(t, err, "runtime.Goexit")
					if workers == 1 {
						require.Equal(t, 2, failure.Sample)
						require.ErrorContains(t, err, "unreadable")
					}
					require.NoError(t, run.Close())
					require.Equal(t, 1, mem.Free())
				})
			})
		}
	}
}

// source is an Iterable of whatever samples does.
type source struct {
	samples func(ctx context.Context, yield func(loader.Encoder, error) bool)
}

func (source) Fields() []loader.Field { return numberFields }

func (s source) Samples(ctx context.Context, _ int) iter.Seq2[loader.Encoder, error] {
	if s.samples == nil {
		return nil
	}
	return func(yield func(loader.Encoder, error) bool) { s.samples(ctx, yield) }
}

// encoder is the sample that writes its number.
type encoder int

func (e encoder) Encode(ctx context.Context, row *loader.Row) error {
	return encodeNumber(ctx, int(e), row)
}

func TestAnIteratorThatMisbehavesIsAFailure(t *testing.T) {
	unreadable := errors.New("unreadable")
	// broken yields three samples and then does that.
	broken := func(then func(yield func(loader.Encoder, error) bool)) source {
		return source{func(_ context.Context, yield func(loader.Encoder, error) bool) {
			for i := range 3 {
				if !yield(encoder(i), nil) {
					return
				}
			}
			then(yield)
		}}
	}
	for name, c := range map[string]struct {
		source  source
		batches int
		message string
		close   string // in Close's error, if not empty
	}{
		"no iterator": {source{}, 0, "Samples returned nil", ""},
		"no sample":   {broken(func(yield func(loader.Encoder, error) bool) { yield(nil, nil) }), 1, "neither a sample nor an error", ""},
		"panics":      {broken(func(func(loader.Encoder, error) bool) { panic(unreadable) }), 1, "unreadable", ""},
		"goexit":      {broken(func(func(loader.Encoder, error) bool) { runtime.Goexit() }), 1, "runtime.Goexit", ""},
		"fails and panics": {broken(func(yield func(loader.Encoder, error) bool) {
			yield(nil, unreadable)
			panic("cannot be closed")
		}), 1, "unreadable", "cannot be closed"},
		"fails and yields on": {broken(func(yield func(loader.Encoder, error) bool) {
			yield(nil, unreadable)
			yield(encoder(3), nil)
		}), 1, "unreadable", "range function continued iteration"},
		"fails and ends the goroutine": {broken(func(yield func(loader.Encoder, error) bool) {
			yield(nil, unreadable)
			runtime.Goexit()
		}), 1, "unreadable", "runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := loader.NewIterable(c.source, 2, loader.Options{Workers: 2, Epochs: 2})
				require.NoError(t, err)
				mem := heap(t, l, 3)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				batches, err := readEpoch(l, run, mem)
				require.Len(t, batches, c.batches)
				var failure *loader.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, loader.StageIterate, failure.Stage)
				require.ErrorContains(t, err, c.message)
				err = run.Close()
				if c.close == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.close)
				}
				require.Equal(t, 3, mem.Free())
			})
		})
	}
}

// Code that runs when an iterator is told to stop is the user's too.
func TestAnIteratorsCleanUpIsUserCode(t *testing.T) {
	for name, c := range map[string]struct {
		cleanUp func(yield func(loader.Encoder, error) bool)
		message string
		stuck   bool
	}{
		"panics":    {func(func(loader.Encoder, error) bool) { panic("cannot be closed") }, "cannot be closed", false},
		"yields on": {func(yield func(loader.Encoder, error) bool) { yield(encoder(0), nil) }, "range function continued iteration", false},
		"goexit":    {func(func(loader.Encoder, error) bool) { runtime.Goexit() }, "runtime.Goexit", false},
		"hangs":     {func(func(loader.Encoder, error) bool) { time.Sleep(time.Hour) }, "iterate ignored its context", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endless := source{func(_ context.Context, yield func(loader.Encoder, error) bool) {
					defer c.cleanUp(yield)
					for i := 0; yield(encoder(i), nil); i++ {
					}
				}}
				l, err := loader.NewIterable(endless, 2, loader.Options{Workers: 1, GracePeriod: time.Second})
				require.NoError(t, err)
				mem := heap(t, l, 2)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				b, err := read(l, run, mem)
				require.NoError(t, err)
				require.Equal(t, []int64{0, 1}, b.indices)
				synctest.Wait()
				err = run.Close()
				require.ErrorContains(t, err, c.message)
				if c.stuck {
					var stuck *loader.StuckError
					require.ErrorAs(t, err, &stuck)
					require.Equal(t, loader.StageIterate, stuck.Stage)
				}
				require.Equal(t, 2, mem.Free())
				time.Sleep(time.Hour)
			})
		})
	}
}

// A panic of a Read that was to stop has no batch to be reported with.
func TestAPanicAfterTheEndIsClosesError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(ctx context.Context, _ int, _ *loader.Row) error {
			<-ctx.Done()
			panic("torn down")
		}
		l := newNumbers(t, numbers{n: 8, before: read}, 4, loader.Options{Workers: 2})
		run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 2))
		synctest.Wait()
		err := run.Close()
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, loader.StageRead, failure.Stage)
		var caught *loader.PanicError
		require.ErrorAs(t, err, &caught)
		require.Equal(t, "torn down", caught.Value)
	})
}

// oddMemory is a Heap whose Get may do something else.
type oddMemory struct {
	*loader.Heap
	get func(ctx context.Context, n int, slot func() (loader.Slot, error)) (loader.Slot, error)
	n   int
}

func (m *oddMemory) Get(ctx context.Context) (loader.Slot, error) {
	m.n++
	return m.get(ctx, m.n, func() (loader.Slot, error) { return m.Heap.Get(ctx) })
}

func TestAMemoryThatMisbehavesIsAFailure(t *testing.T) {
	var first loader.Slot
	for name, c := range map[string]struct {
		third   func(slot loader.Slot) loader.Slot
		message string
	}{
		"panics":           {func(loader.Slot) loader.Slot { panic("lost") }, "lost"},
		"goexit":           {func(s loader.Slot) loader.Slot { runtime.Goexit(); return s }, "runtime.Goexit"},
		"gives one twice":  {func(loader.Slot) loader.Slot { return first }, "given out while it was out"},
		"gives no memory":  {func(s loader.Slot) loader.Slot { s.Bytes = nil; return s }, "has 0 bytes"},
		"gives odd memory": {func(s loader.Slot) loader.Slot { s.Bytes = s.Bytes[1:]; return s }, "begins at"},
	} {
		for _, iterable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/iterable=%v", name, iterable), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := loader.Options{Workers: 2, Epochs: 2}
					l := newNumbers(t, numbers{n: 20}, 2, o)
					if iterable {
						l = newStream(t, upTo(20), 2, o)
					}
					mem := &oddMemory{Heap: heap(t, l, 4)}
					mem.get = func(_ context.Context, n int, get func() (loader.Slot, error)) (loader.Slot, error) {
						slot, err := get()
						switch n {
						case 1:
							first = slot
						case 3:
							return c.third(slot), err
						}
						return slot, err
					}
					run := l.Start(t.Context(), loader.Cursor{}, mem)
					synctest.Wait()
					batches, err := readEpoch(l, run, mem.Heap)
					require.Equal(t, []int64{0, 1, 2, 3}, indices(batches))
					var failure *loader.Error
					require.ErrorAs(t, err, &failure)
					require.Equal(t, loader.StageSlot, failure.Stage)
					require.Equal(t, 2, failure.Batch)
					require.ErrorContains(t, err, c.message)
					require.NoError(t, run.Close())
				})
			})
		}
	}
}

func TestAMemoryThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNumbers(t, numbers{n: 20}, 2, loader.Options{Workers: 2, GracePeriod: time.Second})
		mem := &oddMemory{Heap: heap(t, l, 4)}
		mem.get = func(_ context.Context, n int, get func() (loader.Slot, error)) (loader.Slot, error) {
			if n == 2 {
				time.Sleep(time.Hour)
			}
			return get()
		}
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		_, err := read(l, run, mem.Heap)
		require.NoError(t, err)
		var stuck *loader.StuckError
		require.ErrorAs(t, run.Close(), &stuck)
		require.Equal(t, loader.StageSlot, stuck.Stage)
		require.Equal(t, 1, stuck.Batch)
		require.Equal(t, 4, mem.Free())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 4, mem.Free())
	})
}
