package loader_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

const otherSource = "; FromSeqFunc makes an Iterable that can begin again"

// why is the reason for which the source of l can't be read from a cursor; "" if it can.
func why(t *testing.T, l *loader.Loader, at loader.Cursor) string {
	t.Helper()
	s := l.StateAt(loader.Cursor{})
	s.Epoch, s.Position, s.Substituted = at.Epoch, at.Position, at.Substituted
	err := l.Check(s)
	if err == nil {
		return ""
	}
	var once *loader.OnePassError
	require.ErrorAs(t, err, &once)
	return once.Reason
}

// Who asks a source for a place that it is not at is told both places; just before its
// end and just behind it are one.
func TestASourceOfOnePassSaysWhereItStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(6).loader(t, 2, loader.Options{Workers: 1})
		require.Equal(t, "it is at its beginning and cannot be read from epoch 0, position 4: what another process had of it is gone"+otherSource,
			why(t, l, loader.Cursor{Position: 4}))
		mem := heap(t, l, 4)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		require.Empty(t, why(t, l, b.filled.After))
		require.Empty(t, why(t, l, loader.Cursor{Position: 2, Substituted: 1}), "what a rank has replaced is no place")
		require.Equal(t, "it is at epoch 0, position 2, and cannot be read from epoch 0, position 0"+otherSource,
			why(t, l, loader.Cursor{}))
		synctest.Wait() // the iterator has ended, and four samples are not delivered
		require.Equal(t, "it is at epoch 0, position 2, and cannot be read from epoch 1, position 0"+otherSource,
			why(t, l, loader.Cursor{Epoch: 1}))

		for range 2 {
			_, err = read(l, run, mem)
			require.NoError(t, err)
		}
		require.Empty(t, why(t, l, loader.Cursor{Position: 6}))
		require.Empty(t, why(t, l, loader.Cursor{Epoch: 1}), "nothing is left, though nobody has been told")
		_, err = read(l, run, mem)
		require.Equal(t, loader.ErrEpochEnd, err)
		require.Empty(t, why(t, l, loader.Cursor{Position: 6}), "just before the end")
		require.Empty(t, why(t, l, loader.Cursor{Epoch: 1}))
		require.Equal(t, "it is at epoch 1, position 0, and cannot be read from epoch 0, position 4"+otherSource,
			why(t, l, loader.Cursor{Position: 4}))
		require.NoError(t, run.Close())
		require.NoError(t, l.Close())
		require.Equal(t, "it is closed", why(t, l, loader.Cursor{Epoch: 1}))
	})
}

// A state of other data says so, and not where the source stands.
func TestASourceOfOnePassIsNotAskedByAStateOfOtherData(t *testing.T) {
	l := newLive(6).loader(t, 2, loader.Options{})
	s := l.StateAt(loader.Cursor{Position: 4})
	s.Seed++
	err := l.Check(s)
	var state *loader.StateError
	require.ErrorAs(t, err, &state)
	var once *loader.OnePassError
	require.NotErrorAs(t, err, &once)
}

func TestASourceOfOnePassHasOnePipeline(t *testing.T) {
	reason := func(err error) string {
		var once *loader.OnePassError
		require.ErrorAs(t, err, &once)
		return once.Reason
	}
	refused := func(l *loader.Loader) string {
		_, err := l.Claim()
		return reason(err)
	}
	it := loader.FromSeq(numberFields, newLive(6).seq, encodeNumber)
	l, err := loader.NewIterable(it, 2, loader.Options{})
	require.NoError(t, err)
	second, err := loader.NewIterable(it, 3, loader.Options{})
	require.NoError(t, err)
	wrapper, err := loader.NewIterable(wrapped{it}, 3, loader.Options{Epochs: 1})
	require.NoError(t, err)

	claim, err := l.Claim()
	require.NoError(t, err)
	require.Equal(t, "another pipeline has it", refused(second))
	require.Equal(t, "another pipeline has it", refused(l))
	batches, err := readAll(t, wrapper, loader.Cursor{}, 2)
	require.Empty(t, batches)
	require.Equal(t, "another pipeline has it", reason(err))

	// What a claimed source has delivered is what its pipeline says.
	mem := heap(t, l, 3)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	b, err := read(l, run, mem)
	require.NoError(t, err)
	require.Empty(t, why(t, l, loader.Cursor{}))
	claim.Delivered(b.filled.After)
	require.Empty(t, why(t, l, b.filled.After))
	require.NoError(t, run.Close())
	require.NoError(t, l.Close())
	require.Equal(t, "it is closed", refused(l))
	require.Equal(t, "it is closed", refused(second))
	_, err = readAll(t, wrapper, loader.Cursor{}, 2)
	require.Equal(t, "it is closed", reason(err))

	// A source that is read unclaimed is not for a wrapper either; and one whose pass a
	// wrapper has begun is for nobody else.
	it = loader.FromSeq(numberFields, newLive(6).seq, encodeNumber)
	l, err = loader.NewIterable(it, 2, loader.Options{})
	require.NoError(t, err)
	wrapper, err = loader.NewIterable(wrapped{it}, 3, loader.Options{Epochs: 1})
	require.NoError(t, err)
	mem = heap(t, l, 3)
	run = l.Start(t.Context(), loader.Cursor{}, mem)
	batches, err = readAll(t, wrapper, loader.Cursor{}, 2)
	require.Empty(t, batches)
	require.Equal(t, "another pipeline has it", reason(err))
	require.NoError(t, run.Close())
	require.NoError(t, l.Close())

	it = loader.FromSeq(numberFields, newLive(6).seq, encodeNumber)
	l, err = loader.NewIterable(it, 2, loader.Options{})
	require.NoError(t, err)
	wrapper, err = loader.NewIterable(wrapped{it}, 3, loader.Options{Epochs: 1})
	require.NoError(t, err)
	batches, err = readAll(t, wrapper, loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Len(t, batches, 2)
	require.Equal(t, "a pass over it has begun", refused(l))
	require.Equal(t, "a pass over it has begun", why(t, l, loader.Cursor{}))
}

// An iterator's panic is the run's failure, and what it gave before is delivered; in
// its clean-up, with nobody to give samples to, it is Close's.
func TestAnIteratorOfOnePassThatDies(t *testing.T) {
	broken := errors.New("broken")
	for name, die := range map[string]func(){"panic": func() { panic(broken) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			source := newLive(4)
			seq := func(yield func(int, error) bool) {
				source.seq(yield)
				die()
			}
			l, err := loader.NewIterable(loader.FromSeq(numberFields, seq, source.encode), 2, loader.Options{Epochs: 1})
			require.NoError(t, err)
			mem := heap(t, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			batches, err := readEpoch(l, run, mem)
			var where *loader.Error
			require.ErrorAs(t, err, &where)
			require.Equal(t, loader.StageIterate, where.Stage)
			require.NoError(t, run.Close())
			at := loader.Cursor{Position: int64(len(indices(batches)))}
			require.Len(t, batches, 2)

			// It is reported once; then the source has ended.
			run = l.Start(t.Context(), at, mem)
			_, err = read(l, run, mem)
			require.Equal(t, loader.ErrEpochEnd, err)
			require.NoError(t, run.Close())
			require.NoError(t, l.Close())
		})
		t.Run(name+" in its clean-up", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seq := func(yield func(int, error) bool) {
					defer die()
					for n := 0; yield(n, nil); n++ {
					}
				}
				l, err := loader.NewIterable(loader.FromSeq(numberFields, seq, encodeNumber), 2, loader.Options{Epochs: 1})
				require.NoError(t, err)
				mem := heap(t, l, 3)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				synctest.Wait()
				require.NoError(t, run.Close())
				err = l.Close()
				require.ErrorContains(t, err, string(loader.StageIterate))
				if name == "panic" {
					require.ErrorIs(t, err, broken)
				}
			})
		})
	}
}

// What was encoded for a range that was left is judged again by the next: a field that
// nobody wrote does not become right by being kept.
func TestARowThatIsKeptIsNotExcused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forgets := func(ctx context.Context, n int, row *loader.Row) error {
			if n == 3 {
				loader.Column[int64](row, "index")[0] = 3
				return nil
			}
			return encodeNumber(ctx, n, row)
		}
		l, err := loader.NewIterable(loader.FromSeq(numberFields, newLive(6).seq, forgets), 2, loader.Options{Epochs: 1, Workers: 1})
		require.NoError(t, err)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		synctest.Wait() // sample 3 is encoded
		require.NoError(t, run.Close())
		run = l.Start(t.Context(), b.filled.After, mem)
		_, err = read(l, run, mem)
		var unwritten *loader.UnwrittenError
		require.ErrorAs(t, err, &unwritten)
		require.NoError(t, run.Close())
		require.NoError(t, l.Close())
	})
}

// A sample that owns something and gave up because the range was left has had its end:
// that is reported when it is its turn, and it is not encoded again.
func TestAnOwnerWhoseEncodeWasCancelledIsNotEncodedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &owners{n: 4}
		times := 0
		encode := func(ctx context.Context, o *owner, row *loader.Row) error {
			if o.n == 2 {
				times++
				o.ends.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}
			return encodeOwner(ctx, o, row)
		}
		l, err := loader.NewIterable(loader.FromSeq(numberFields, source.seq, encode), 2, loader.Options{Epochs: 1, Workers: 1})
		require.NoError(t, err)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, run.Close())
		run = l.Start(t.Context(), b.filled.After, mem)
		_, err = read(l, run, mem)
		var where *loader.Error
		require.ErrorAs(t, err, &where)
		require.ErrorIs(t, err, context.Canceled)
		require.EqualValues(t, 2, where.Position)
		require.Equal(t, 1, times)
		require.NoError(t, run.Close())
		require.NoError(t, l.Close())
		source.ended(t)
	})
}

// Where the source stands may be asked from any goroutine while it is read: the race
// detector is this test's judge.
func TestASourceOfOnePassIsAskedWhileItIsRead(t *testing.T) {
	l := newLive(40).loader(t, 2, loader.Options{})
	state := l.StateAt(loader.Cursor{})
	claim, err := l.Claim()
	require.NoError(t, err)
	mem := heap(t, l, 3)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for _, ask := range []func(){
		func() { _ = l.Check(state) },
		func() { claim.Reported(errors.New("of another source")) },
		func() { claim.Delivered(loader.Cursor{}) },
	} {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					ask()
				}
			}
		})
	}
	batches, err := readEpoch(l, run, mem)
	close(stop)
	require.Equal(t, loader.ErrEpochEnd, err)
	require.Len(t, batches, 20)
	asking.Wait()
	require.NoError(t, run.Close())
	require.NoError(t, l.Close())
}

// Of all who want a source, one gets it, while it is read as well.
func TestOneOfManyGetsASource(t *testing.T) {
	for range 30 {
		it := loader.FromSeq(numberFields, newLive(40).seq, encodeNumber)
		l, err := loader.NewIterable(it, 2, loader.Options{Epochs: 1})
		require.NoError(t, err)
		wrapper, err := loader.NewIterable(wrapped{it}, 2, loader.Options{Epochs: 1})
		require.NoError(t, err)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		first, err := read(l, run, mem)
		require.NoError(t, err)
		var got, refused atomic.Int32
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				if _, err := l.Claim(); err == nil {
					got.Add(1)
				}
			})
			asking.Go(func() {
				if _, err := readAll(t, wrapper, loader.Cursor{}, 2); err != nil {
					refused.Add(1)
				}
			})
		}
		batches, err := readEpoch(l, run, mem)
		require.Equal(t, loader.ErrEpochEnd, err)
		require.Len(t, indices(append(batches, first)), 40)
		asking.Wait()
		require.EqualValues(t, 4, refused.Load(), "a wrapper came too late: a Run had begun")
		require.EqualValues(t, 1, got.Load())
		require.NoError(t, run.Close())
		require.NoError(t, l.Close())
	}
}

// A failure that is told twice takes one sample, also when its place in the queue is
// another's by then.
func TestAFailureToldTwiceTakesOneSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLive(60)
		bad := errors.New("bad")
		source.fail = func(n int) error {
			if n == 1 {
				return bad
			}
			return nil
		}
		l := source.loader(t, 1, loader.Options{Epochs: 1, Workers: 1})
		claim, err := l.Claim()
		require.NoError(t, err)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		claim.Delivered(b.filled.After)
		_, failure := read(l, run, mem)
		require.ErrorIs(t, failure, bad)
		require.NoError(t, run.Close())
		for range 3 {
			claim.Reported(failure)
			synctest.Wait() // the source has read on
		}
		all, at := indices([]batch{b}), b.filled.After
		run = l.Start(t.Context(), at, mem)
		for {
			b, err := read(l, run, mem)
			if err != nil {
				require.Equal(t, loader.ErrEpochEnd, err)
				break
			}
			all = append(all, b.indices...)
			claim.Delivered(b.filled.After)
			claim.Reported(failure)
		}
		require.Len(t, all, 59)
		require.NotContains(t, all, int64(1))
		require.NoError(t, run.Close())
		require.NoError(t, l.Close())
	})
}

// Close of a source that no Run has read has nothing to wait for.
func TestASourceThatWasNotBegunEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(6).loader(t, 2, loader.Options{})
		began := time.Now()
		require.NoError(t, l.Close())
		require.Zero(t, time.Since(began))
	})
}

// An iterator and a sample's Close that both hang are both named, within one grace: the
// iterator by the sample that it was asked for.
func TestAllThatHangsInASourceIsNamedInOneGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 2 * time.Second
		source, release := stuckOwners(7, 4)
		hang := make(chan struct{})
		seq := func(yield func(*owner, error) bool) {
			source.seq(func(o *owner, err error) bool {
				if o.n == 6 {
					<-hang
				}
				return yield(o, err)
			})
		}
		l, err := loader.NewIterable(loader.FromSeq(numberFields, seq, encodeOwner),
			4, loader.Options{Workers: 1, GracePeriod: grace, Last: loader.Drop})
		require.NoError(t, err)
		mem := heap(t, l, 1)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		f, err := run.Next(t.Context()) // its slot is kept, so that no more is encoded
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, run.Close())
		mem.Put(f.Slot)
		began := time.Now()
		err = l.Close()
		require.Equal(t, grace, time.Since(began))
		var places []int64
		var walk func(err error)
		walk = func(err error) {
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				for _, err := range joined.Unwrap() {
					walk(err)
				}
				return
			}
			var stuck *loader.StuckError
			require.ErrorAs(t, err, &stuck)
			places = append(places, stuck.Position)
		}
		walk(err)
		require.Equal(t, []int64{6, 4}, places)
		close(hang)
		release()
		synctest.Wait()
		source.ended(t)
	})
}

// An encode that panics because its context is done has not failed either.
func TestAnEncodeThatPanicsWhenCancelledIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		encode := func(ctx context.Context, n int, row *loader.Row) error {
			select {
			case <-ctx.Done():
				panic(ctx.Err())
			case <-time.After(time.Second):
				return encodeNumber(ctx, n, row)
			}
		}
		l, err := loader.NewIterable(loader.FromSeq(numberFields, newLive(4).seq, encode), 2, loader.Options{Epochs: 1, Workers: 1})
		require.NoError(t, err)
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		time.Sleep(500 * time.Millisecond) // in the middle of the next
		require.NoError(t, run.Close(), "a panic that is told again is told twice")
		run = l.Start(t.Context(), b.filled.After, mem)
		b, err = read(l, run, mem)
		require.NoError(t, err)
		require.Equal(t, []int64{2, 3}, b.indices)
		require.NoError(t, run.Close())
		require.NoError(t, l.Close())
	})
}

// A refusal is no sample's failure: who reports it loses nothing.
func TestARefusedPassTakesNoSample(t *testing.T) {
	l := newLive(4).loader(t, 2, loader.Options{})
	claim, err := l.Claim()
	require.NoError(t, err)
	mem := heap(t, l, 3)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	_, err = read(l, run, mem)
	require.NoError(t, err)
	busy := l.Start(t.Context(), loader.Cursor{}, mem) // beside the first
	_, err = busy.Next(t.Context())
	var once *loader.OnePassError
	require.ErrorAs(t, err, &once)
	claim.Reported(err)
	require.NoError(t, busy.Close())
	require.NoError(t, run.Close())

	run = l.Start(t.Context(), loader.Cursor{}, mem) // nothing was said to be delivered
	batches, err := readEpoch(l, run, mem)
	require.Equal(t, loader.ErrEpochEnd, err)
	require.Equal(t, []int64{0, 1, 2, 3}, indices(batches))
	require.NoError(t, run.Close())
	require.NoError(t, l.Close())
}

// A pass that a wrapper begins is known to all who ask at that time.
func TestAWrappedPassIsAskedWhileItBegins(t *testing.T) {
	for range 30 {
		it := loader.FromSeq(numberFields, newLive(4).seq, encodeNumber)
		l, err := loader.NewIterable(it, 2, loader.Options{})
		require.NoError(t, err)
		wrapper, err := loader.NewIterable(wrapped{it}, 2, loader.Options{Epochs: 1})
		require.NoError(t, err)
		state := l.StateAt(loader.Cursor{})
		var asking sync.WaitGroup
		begun := make(chan struct{})
		asking.Go(func() {
			for {
				_ = l.Check(state)
				select {
				case <-begun:
					return
				default:
				}
			}
		})
		batches, err := readAll(t, wrapper, loader.Cursor{}, 2)
		require.NoError(t, err)
		require.Len(t, batches, 2)
		close(begun)
		asking.Wait()
		require.NotEmpty(t, why(t, l, loader.Cursor{}))
	}
}
