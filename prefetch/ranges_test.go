package prefetch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A turn is the epoch and the number of a batch that a loop was given.
type turn struct{ epoch, batch int }

func turnOf(b prefetch.Batch) turn {
	at := b.Position()
	return turn{at.Epoch, at.Batch}
}

// turns are all batches of so many epochs.
func turns(epochs, batches int) (all []turn) {
	for i := range epochs * batches {
		all = append(all, turn{i / batches, i % batches})
	}
	return all
}

// some ranges over at most n batches; it leaves the range in the given way, or by its end.
func some(t *testing.T, of iter.Seq2[prefetch.Batch, error], n int, way string) (all []turn) {
	defer func() {
		if v := recover(); v != nil && v != "stop" {
			panic(v)
		}
	}()
	if n == 0 {
		return nil
	}
	for b, err := range of {
		require.NoError(t, err)
		all = append(all, turnOf(b))
		if len(all) == n {
			if way == "panic" {
				panic("stop")
			}
			break
		}
	}
	return all
}

// ranges are the ranges that there are.
var ranges = map[string]func(*prefetch.Prefetcher, context.Context) iter.Seq2[prefetch.Batch, error]{
	"All":     (*prefetch.Prefetcher).All,
	"Batches": (*prefetch.Prefetcher).Batches,
	"Epochs":  flat,
	"Pass":    (*prefetch.Prefetcher).Pass,
}

// flat is Epochs as one range: both loops end with the body.
func flat(pf *prefetch.Prefetcher, ctx context.Context) iter.Seq2[prefetch.Batch, error] {
	return func(yield func(prefetch.Batch, error) bool) {
		for _, batches := range pf.Epochs(ctx) {
			for b, err := range batches {
				if !yield(b, err) {
					return
				}
			}
		}
	}
}

// eachForm runs f for each form of pipeline, over a dataset of three batches an epoch.
func eachForm(t *testing.T, epochs int, f func(t *testing.T, pf *prefetch.Prefetcher)) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 11, width: 8}, 4, loader.Options{Workers: 2, Epochs: epochs}, prefetch.Options{}, time.Millisecond)
				f(t, pf)
				closes(t, pf)
			})
		})
	}
}

func TestAllIsEveryEpochInOneRange(t *testing.T) {
	eachForm(t, 3, func(t *testing.T, pf *prefetch.Prefetcher) {
		for _, way := range []string{"break", "panic"} {
			for stop := range 10 {
				require.NoError(t, pf.Seek(0, 0))
				all := some(t, pf.All(t.Context()), stop, way)
				require.Len(t, all, stop)
				all = append(all, some(t, pf.All(t.Context()), -1, "")...)
				require.Equal(t, turns(3, 3), all, "%s behind %d", way, stop)
				require.Equal(t, 3, pf.Epoch())
				require.Empty(t, some(t, pf.All(t.Context()), -1, ""), "there is nothing left")
			}
		}
	})
}

func TestAllEndsOnlyWhereEpochsAreStated(t *testing.T) {
	eachForm(t, 0, func(t *testing.T, pf *prefetch.Prefetcher) {
		require.Equal(t, turns(7, 3), some(t, pf.All(t.Context()), 21, "break"))
		require.Equal(t, turn{7, 0}, some(t, pf.All(t.Context()), 1, "break")[0])
	})
}

// An error comes once, last and with the zero Batch, behind the batches before it. A range
// that comes later meets it again, at the same place.
func TestAnErrorEndsEveryRangeOnce(t *testing.T) {
	for name, ranges := range ranges {
		for _, form := range forms {
			t.Run(name+"/"+form.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 11, width: 8, read: failing(9)}
					pf := form.open(t, data, 4, loader.Options{Workers: 2, Epochs: 3}, prefetch.Options{}, 0)
					for again := range 3 {
						want := 2 // batches before the error
						if again > 0 && name != "Pass" {
							want = 0
						}
						batches, failures := 0, 0
						for b, err := range ranges(pf, t.Context()) {
							require.Zero(t, failures, "it is the last")
							if err == nil {
								batches++
								continue
							}
							failures++
							require.Zero(t, b)
							var mine *userError
							require.ErrorAs(t, err, &mine)
							var where *loader.Error
							require.ErrorAs(t, err, &where)
							require.Equal(t, turn{0, 2}, turn{where.Epoch, where.Batch})
						}
						require.Equal(t, want, batches)
						require.Equal(t, 1, failures)
						require.Zero(t, pf.Epoch())
						require.EqualValues(t, 8, pf.State().Position)
					}
					closes(t, pf)
				})
			})
		}
	}
}

func TestTheContextEndsEveryRange(t *testing.T) {
	enough := errors.New("enough")
	for name, ranges := range ranges {
		t.Run(name, func(t *testing.T) {
			eachForm(t, 2, func(t *testing.T, pf *prefetch.Prefetcher) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				batches, failures := 0, 0
				for _, err := range ranges(pf, ctx) {
					if err != nil {
						require.Equal(t, enough, err)
						failures++
						continue
					}
					if batches++; batches == 2 {
						cancel(enough)
					}
				}
				require.Equal(t, 2, batches)
				require.Equal(t, 1, failures)
				for _, err := range ranges(pf, ctx) {
					require.Equal(t, enough, err)
					failures++
				}
				require.Equal(t, 2, failures)
				if name != "Pass" {
					require.Equal(t, turns(2, 3)[2:], some(t, pf.All(t.Context()), -1, ""), "with another context it goes on")
				}
			})
		})
	}
}

func TestEpochsNumbersThem(t *testing.T) {
	eachForm(t, 4, func(t *testing.T, pf *prefetch.Prefetcher) {
		var all []turn
		next := 0
		for epoch, batches := range pf.Epochs(t.Context()) {
			require.Equal(t, next, epoch)
			next++
			for b, err := range batches {
				require.NoError(t, err)
				all = append(all, turnOf(b))
			}
			require.Empty(t, some(t, batches, -1, ""), "the epoch's batches come once")
		}
		require.Equal(t, turns(4, 3), all)
		for range pf.Epochs(t.Context()) {
			t.Error("there is no fifth")
		}
	})
}

// A body that leaves an epoch's batches, or takes none of them, leaves out the rest.
func TestAnEpochThatIsLeftEarlyIsLeftOut(t *testing.T) {
	eachForm(t, 5, func(t *testing.T, pf *prefetch.Prefetcher) {
		var all []turn
		for epoch, batches := range pf.Epochs(t.Context()) {
			all = append(all, some(t, batches, epoch, "break")...)
		}
		require.Equal(t, []turn{{1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}}, all)
		require.Equal(t, 5, pf.Epoch(), "also the rest of the last")
		require.NoError(t, pf.Seek(4, 8))
		for _, batches := range pf.Epochs(t.Context()) {
			_ = batches
		}
		require.Equal(t, 5, pf.Epoch())
	})
}

// A body may come back to an epoch's batches within its own turn.
func TestAnEpochsBatchesInTwoLoops(t *testing.T) {
	eachForm(t, 2, func(t *testing.T, pf *prefetch.Prefetcher) {
		var all []turn
		var kept []iter.Seq2[prefetch.Batch, error]
		for _, batches := range pf.Epochs(t.Context()) {
			kept = append(kept, batches)
			all = append(all, some(t, batches, 1, "break")...)
			require.Empty(t, some(t, kept[0], len(kept)/2, ""), "those of an epoch that is over")
			all = append(all, some(t, batches, 2, "break")...)
		}
		require.Equal(t, turns(2, 3), all)
	})
}

func TestBothLoopsLeftKeepThePosition(t *testing.T) {
	eachForm(t, 3, func(t *testing.T, pf *prefetch.Prefetcher) {
		for _, way := range []string{"break", "panic"} {
			for stop := 1; stop < 9; stop++ {
				require.NoError(t, pf.Seek(0, 0))
				all := some(t, flat(pf, t.Context()), stop, way)
				require.Equal(t, turns(3, 3)[:stop], all)
				first := true
				for epoch, batches := range pf.Epochs(t.Context()) {
					if first {
						require.Equal(t, stop/3, epoch, "the number of the epoch that was left")
						first = false
					}
					all = append(all, some(t, batches, -1, "")...)
				}
				require.Equal(t, turns(3, 3), all, "%s behind %d", way, stop)
			}
		}
	})
}

// A stream that was left behind its last batch is not known to be at its end. Its epoch comes
// once more, empty, and the next one under its own number.
func TestEpochsOfAStreamLeftBehindItsLastBatch(t *testing.T) {
	for form, open := range pipelines {
		for _, way := range []string{"both loops", "the inner", "restore"} {
			t.Run(form+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					lo := loader.Options{Workers: 2, Epochs: 3}
					r := newRig(t, canary{n: 8, width: 7}, adversarial(0), 4, lo, prefetch.Options{})
					begin := func() {
						require.NoError(t, r.pf.Close())
						ld, err := loader.NewIterable(stream(r.data, nil), 4, lo)
						require.NoError(t, err)
						r.pf, err = open(r, ld)
						require.NoError(t, err)
					}
					begin()
					got := [3][]turn{}
					left := false
					loop := func() {
						for epoch, batches := range r.pf.Epochs(t.Context()) {
							if epoch == 0 && !left {
								left = true
								got[epoch] = append(got[epoch], some(t, batches, 2, "break")...)
								if way != "the inner" {
									return
								}
							}
							got[epoch] = append(got[epoch], some(t, batches, -1, "")...)
						}
					}
					loop()
					if way == "restore" {
						state := r.pf.State()
						begin()
						require.NoError(t, r.pf.Restore(state))
					}
					loop()
					for epoch := range got {
						require.Equal(t, turns(3, 2)[2*epoch:][:2], got[epoch], "epoch %d", epoch)
					}
					require.Equal(t, 3, r.pf.Epoch())
					r.close()
				})
			})
		}
	}
}

// The first epoch is what a state in its middle has left of it.
func TestEpochsBeginInTheMiddleOfOne(t *testing.T) {
	eachForm(t, 3, func(t *testing.T, pf *prefetch.Prefetcher) {
		require.Len(t, some(t, pf.All(t.Context()), 5, "break"), 5)
		text, err := json.Marshal(pf.State())
		require.NoError(t, err)
		require.NoError(t, pf.Seek(0, 0))
		var state loader.State
		require.NoError(t, json.Unmarshal(text, &state))
		require.NoError(t, pf.Restore(state))
		var all []turn
		var numbers []int
		for epoch, batches := range pf.Epochs(t.Context()) {
			numbers = append(numbers, epoch)
			all = append(all, some(t, batches, -1, "")...)
		}
		require.Equal(t, []int{1, 2}, numbers)
		require.Equal(t, turns(3, 3)[5:], all)
	})
}

// While a range is open no other call moves the place. Between two epochs' loops the body
// may, and then the loop goes on from there.
func TestMovingWithinEpochs(t *testing.T) {
	eachForm(t, 3, func(t *testing.T, pf *prefetch.Prefetcher) {
		var all []turn
		again := false
		for epoch, batches := range pf.Epochs(t.Context()) {
			for b, err := range batches {
				require.NoError(t, err)
				all = append(all, turnOf(b))
				require.Equal(t, prefetch.ErrBusy, pf.Seek(0, 0))
				require.Equal(t, prefetch.ErrBusy, pf.Restore(pf.State()))
				require.Equal(t, prefetch.ErrBusy, pf.Start(t.Context()))
				if pf.Epoch() == 3 {
					break // all are delivered: nothing is left to be busy with
				}
				for _, other := range ranges {
					n := 0
					for _, err := range other(pf, t.Context()) {
						require.Equal(t, prefetch.ErrBusy, err)
						if n++; n > 1 {
							break
						}
					}
					require.Equal(t, 1, n)
				}
			}
			if epoch == 1 && !again {
				again = true
				require.NoError(t, pf.Seek(0, 8))
			}
		}
		require.Equal(t, append(append(turns(2, 3), turn{0, 2}), turns(3, 3)[3:]...), all)
	})
}

// What ends the loop of the batches ends that of the epochs, whatever the body does about
// it: a body that notes errors and goes on, or leaves the inner loop only, is not called
// again and again.
func TestAnErrorEndsTheEpochsToo(t *testing.T) {
	for _, body := range []string{"break", "continue"} {
		for _, form := range forms {
			t.Run(body+"/"+form.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 11, width: 8, read: failing(9)}
					pf := form.open(t, data, 4, loader.Options{Epochs: 3}, prefetch.Options{}, 0)
					epochs, failures := 0, 0
					for epoch, batches := range pf.Epochs(t.Context()) {
						require.Zero(t, epoch)
						epochs++
						for _, err := range batches {
							if err == nil {
								continue
							}
							failures++
							if body == "break" {
								break
							}
						}
						require.Empty(t, some(t, batches, -1, ""), "they have ended")
					}
					require.Equal(t, 1, epochs)
					require.Equal(t, 1, failures)
					closes(t, pf)
				})
			})
		}
	}
}

// With no epoch that could begin the error comes all the same, in a loop of its own.
func TestEpochsOfAClosedPrefetcher(t *testing.T) {
	eachForm(t, 2, func(t *testing.T, pf *prefetch.Prefetcher) {
		turns := 0
		for epoch, batches := range pf.Epochs(t.Context()) {
			if turns++; turns == 1 {
				require.Len(t, some(t, batches, 1, "break"), 1)
				closes(t, pf)
				continue
			}
			require.Equal(t, 1, epoch)
			for b, err := range batches {
				require.Zero(t, b)
				require.ErrorIs(t, err, prefetch.ErrClosed)
				turns++
			}
		}
		require.Equal(t, 3, turns)
		for _, of := range []iter.Seq2[prefetch.Batch, error]{pf.All(t.Context()), pf.Batches(t.Context()), pf.Pass(t.Context()), flat(pf, t.Context())} {
			n := 0
			for _, err := range of {
				require.ErrorIs(t, err, prefetch.ErrClosed)
				n++
			}
			require.Equal(t, 1, n)
		}
	})
}

// A pass is whole and the same each time, however the last one ended and whatever else the
// Prefetcher was used for between them.
func TestAPassIsAlwaysWhole(t *testing.T) {
	for _, epochs := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("epochs=%d", epochs), func(t *testing.T) {
			eachForm(t, epochs, func(t *testing.T, pf *prefetch.Prefetcher) {
				pass := pf.Pass(t.Context())
				for _, stop := range []int{-1, 1, 2, 3, -1, 0, 1, -1} {
					for _, way := range []string{"break", "panic"} {
						want := turns(1, 3)
						if stop >= 0 {
							want = want[:stop:stop]
						}
						require.Equal(t, want, append([]turn{}, some(t, pass, stop, way)...))
					}
					if epochs == 2 { // a range goes on behind it, and the next pass begins anew
						if stop == 3 {
							require.Equal(t, turns(2, 3)[2:], append([]turn{{0, 2}}, some(t, pf.Batches(t.Context()), 3, "break")...))
						}
						some(t, pf.All(t.Context()), 2, "break")
					}
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				enough := errors.New("enough")
				var failed error
				for _, err := range pf.Pass(ctx) {
					failed = err
					cancel(enough)
				}
				require.Equal(t, enough, failed)
				require.Equal(t, turns(1, 3), some(t, pass, -1, ""))
			})
		})
	}
}

func TestAPassBehindAnErrorIsWhole(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := true
				data := canary{n: 11, width: 8, read: func(_ context.Context, i int) error {
					if bad && i == 7 {
						return &userError{i}
					}
					return nil
				}}
				pf := form.open(t, data, 4, loader.Options{Workers: 1, Epochs: 1}, prefetch.Options{}, 0)
				failures := 0
				for b, err := range pf.Pass(t.Context()) {
					if err != nil {
						failures++
						continue
					}
					require.Zero(t, b.Position().Batch)
				}
				require.Equal(t, 1, failures)
				bad = false
				require.Equal(t, turns(1, 3), some(t, pf.Pass(t.Context()), -1, ""))
				closes(t, pf)
			})
		})
	}
}

// Validation beside training: a pass behind each epoch, on a Prefetcher of its own, which a
// body leaves early.
func TestValidationBesideTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		train := hosts[0].open(t, canary{n: 30, width: 4}, 4, loader.Options{Shuffle: true, Epochs: 3}, prefetch.Options{}, 0)
		test := hosts[0].open(t, canary{n: 20, width: 4}, 4, loader.Options{}, prefetch.Options{}, 0)
		trained := 0
		for _, batches := range train.Epochs(t.Context()) {
			for b, err := range batches {
				require.NoError(t, err)
				trained += b.Len()
				if b.Position().Batch%3 == 0 { // also in the middle of an epoch
					require.Equal(t, turns(1, 2), some(t, test.Pass(t.Context()), 2, "break"))
				}
			}
			require.Equal(t, turns(1, 5), some(t, test.Pass(t.Context()), -1, ""))
		}
		require.Equal(t, 90, trained)
		require.NoError(t, errors.Join(train.Close(), test.Close()))
	})
}

// A source that gives its samples once can't be passed over again; that is said, and what
// is left of it is there.
func TestAPassOverASourceOfOnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 11, width: 4}
		ld, err := loader.NewIterable(newOnce(data).iterable(), 4, loader.Options{Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		require.Equal(t, turns(1, 1), some(t, pf.Pass(t.Context()), 1, "break"))
		n := 0
		for _, err := range pf.Pass(t.Context()) {
			require.ErrorContains(t, err, "gives its samples once")
			n++
		}
		require.Equal(t, 1, n)
		require.Equal(t, turns(1, 3)[1:], some(t, pf.All(t.Context()), -1, ""))
		require.NoError(t, pf.Close())
	})
}

// Batches is the rest of one epoch, and empty where all are delivered.
func TestBatchesIsTheRestOfOneEpoch(t *testing.T) {
	eachForm(t, 2, func(t *testing.T, pf *prefetch.Prefetcher) {
		var all [][]turn
		for _, stop := range []int{1, -1, 3, -1, -1} {
			all = append(all, some(t, pf.Batches(t.Context()), stop, "break"))
		}
		require.Equal(t, [][]turn{{{0, 0}}, {{0, 1}, {0, 2}}, {{1, 0}, {1, 1}, {1, 2}}, nil, nil}, all)
	})
}

// A source with no samples is an error, and no endless turn.
func TestRangesOverNothingEnd(t *testing.T) {
	for name, ranges := range ranges {
		synctest.Test(t, func(t *testing.T) {
			ld, err := loader.NewIterable(stream(canary{width: 4}, nil), 4, loader.Options{})
			require.NoError(t, err)
			pf, err := prefetch.NewHost(ld, prefetch.Options{})
			require.NoError(t, err)
			n := 0
			for _, err := range ranges(pf, t.Context()) {
				require.ErrorContains(t, err, "no samples", name)
				n++
			}
			require.Equal(t, 1, n, name)
			require.NoError(t, pf.Close())
		})
	}
}
