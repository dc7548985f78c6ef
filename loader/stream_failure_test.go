package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// faulty is a stream whose shard 1 does as it is told at one place.
type faulty struct {
	*cut
	open, mark, close func() error
	nilReader         bool
}

func (f *faulty) Open(ctx context.Context, pass loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	if shard == 1 && f.nilReader {
		return nil, nil
	}
	if shard == 1 && f.open != nil {
		if err := f.open(); err != nil {
			return nil, err
		}
	}
	r, err := f.cut.Open(ctx, pass, shard, mark)
	if err == nil && shard == 1 {
		r = &faultyReader{r, f}
	}
	return r, err
}

type faultyReader struct {
	loader.ShardReader
	of *faulty
}

func (r *faultyReader) AppendMark(dst []byte) ([]byte, error) {
	if r.of.mark != nil {
		return dst, r.of.mark()
	}
	return r.ShardReader.AppendMark(dst)
}

func (r *faultyReader) Close() error {
	err := r.ShardReader.Close()
	if r.of.close != nil {
		return r.of.close()
	}
	return err
}

var (
	panics = func() error { panic(errBad) }
	exits  = func() error { runtime.Goexit(); return nil }
	fails  = func() error { return errBad }
	ends   = func() error { return io.EOF }
)

// A shard's failure comes at its place, behind all before it; readers are closed, and no
// goroutine is left.
func TestAShardsFailureComesAtItsPlace(t *testing.T) {
	at := func(n int, f func() error) func(context.Context, loader.Pass, int, int) (loader.Encoder, bool, error) {
		return func(_ context.Context, _ loader.Pass, shard, i int) (loader.Encoder, bool, error) {
			if shard == 1 && i == n {
				return nil, true, f()
			}
			return nil, true, nil
		}
	}
	for name, c := range map[string]struct {
		data   faulty
		before int // samples
		says   string
		is     error
		kept   error // what Close returns
	}{
		"open":             {data: faulty{open: fails}, before: 1, is: errBad},
		"open panics":      {data: faulty{open: panics}, before: 1, is: errBad, says: "panic"},
		"open exits":       {data: faulty{open: exits}, before: 1, says: "runtime.Goexit"},
		"no reader":        {data: faulty{nilReader: true}, before: 1, says: "neither a reader nor an error"},
		"next":             {data: faulty{cut: &cut{next: at(5, fails)}}, before: 16, is: errBad},
		"next panics":      {data: faulty{cut: &cut{next: at(5, panics)}}, before: 16, is: errBad},
		"next exits":       {data: faulty{cut: &cut{next: at(5, exits)}}, before: 16, says: "runtime.Goexit"},
		"a real io.EOF":    {data: faulty{cut: &cut{next: at(5, ends)}}, before: 16, is: io.EOF},
		"mark":             {data: faulty{mark: fails}, before: 3*256 + 1, is: errBad},
		"mark panics":      {data: faulty{mark: panics}, before: 3*256 + 1, is: errBad},
		"mark is no JSON":  {data: faulty{mark: func() error { return nil }}, before: 3*256 + 1, says: "no JSON"},
		"close":            {data: faulty{close: fails}, before: 1200, kept: errBad},
		"close panics":     {data: faulty{close: panics}, before: 1200, kept: errBad},
		"next, then close": {data: faulty{cut: &cut{next: at(5, fails)}, close: panics}, before: 16, is: errBad, kept: errBad},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := c.data
				if data.cut == nil {
					data.cut = &cut{}
				}
				data.sizes, data.every = []int{400, 400, 400}, 1
				l, err := loader.NewStream(&data, 8, loader.Options{Epochs: 1})
				require.NoError(t, err)
				mem := heap(t, l, 3)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				batches, err := readEpoch(l, run, mem)
				require.Len(t, batches, c.before/8)
				closed := run.Close()
				if c.kept != nil {
					require.ErrorIs(t, closed, c.kept)
				} else {
					require.NoError(t, closed)
				}
				require.Equal(t, 3, mem.Free())
				require.Equal(t, data.opened.Load(), data.closed.Load())
				if c.is == nil && c.says == "" {
					require.Equal(t, loader.ErrEpochEnd, err)
					return
				}
				var failure *loader.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, 1, failure.Shard)
				require.EqualValues(t, (c.before-1)/3*3+1, failure.Position)
				require.Equal(t, c.before/8, failure.Batch)
				require.Equal(t, loader.StageIterate, failure.Stage)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "shard 1 (position ")
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
				}
			})
		})
	}
}

// Encode's failures name the file and the record.
func TestASamplesFailureNamesItsOrigin(t *testing.T) {
	for _, f := range []func() error{fails, panics, exits} {
		for _, skips := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := &cut{sizes: []int{9, 9}, every: 1}
				c.encode = func(_ context.Context, number int) error {
					if number == numberOf(0, 1, 5) {
						return f()
					}
					return nil
				}
				batches, err := readAll(t, newCut(t, c, 4, loader.Options{Epochs: 1, Skips: skips, Workers: 2}), loader.Cursor{}, 3)
				require.Len(t, batches, 2)
				var failure *loader.Error
				require.ErrorAs(t, err, &failure)
				require.EqualValues(t, 11, failure.Position)
				require.Equal(t, 1, failure.Shard)
				require.Equal(t, loader.StageEncode, failure.Stage)
				require.ErrorContains(t, err, "shard 1 (position 11), shard-1, record 5 at offset 40: encode: ")
			})
		}
	}
}

// A reader that heeds its context ends with Close; one that does not is reported, with its
// shard, and harms nothing.
func TestAReaderThatBlocks(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			c := &cut{sizes: []int{9, 9, 9}, every: 1}
			c.next = func(ctx context.Context, _ loader.Pass, shard, n int) (loader.Encoder, bool, error) {
				if shard != 2 || n != 3 {
					return nil, true, nil
				}
				if heeds {
					<-ctx.Done()
					return nil, true, ctx.Err()
				}
				<-release
				return nil, true, nil
			}
			l := newCut(t, c, 4, loader.Options{GracePeriod: time.Second, StallTimeout: time.Minute})
			mem := heap(t, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			batches, err := readEpoch(l, run, mem)
			require.Len(t, batches, 2)
			var failure *loader.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, 2, failure.Shard)
			require.EqualValues(t, 11, failure.Position)
			var stall *loader.StallError
			require.ErrorAs(t, err, &stall)
			require.Contains(t, string(stall.Stack), "cutReader")

			err = run.Close()
			if heeds {
				require.NoError(t, err)
			} else {
				var stuck *loader.StuckError
				require.ErrorAs(t, err, &stuck)
				require.Equal(t, 2, stuck.Shard)
				require.ErrorContains(t, err, "shard 2 (position 11): iterate ignored its context for 1s")
			}
			require.Equal(t, 3, mem.Free())
			close(release)
			synctest.Wait()
			require.Equal(t, c.opened.Load(), c.closed.Load())
		})
	}
}

// With a stated number of steps a reader that does not end in time does not hold up the
// end of the data.
func TestTheEndDoesNotWaitForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := &cut{sizes: []int{9}, every: 1}
		c.next = func(_ context.Context, pass loader.Pass, _, n int) (loader.Encoder, bool, error) {
			if pass.Epoch == 1 && n == 0 {
				<-release
			}
			return nil, true, nil
		}
		l := newCut(t, c, 4, loader.Options{Epochs: 1, Steps: 2})
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		batches, err := readEpoch(l, run, mem)
		require.Equal(t, loader.ErrEpochEnd, err)
		require.Len(t, batches, 2)
		require.True(t, batches[1].filled.LastOfEpoch)
		_, err = read(l, run, mem)
		require.Equal(t, loader.ErrEnd, err)
		close(release)
		require.NoError(t, run.Close())
	})
}

// An epoch whose readers do not end is reported as late, with the shard.
func TestAReaderThatDoesNotCloseIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		data := &faulty{cut: &cut{sizes: []int{4, 4}, every: 1}, close: func() error { <-release; return nil }}
		l, err := loader.NewStream(data, 4, loader.Options{Epochs: 2, StallTimeout: time.Minute, GracePeriod: time.Second})
		require.NoError(t, err)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		batches, err := readEpoch(l, run, mem)
		require.Len(t, batches, 2)
		require.ErrorContains(t, err, "shard 1 (position ")
		require.ErrorContains(t, err, "close: no batch for 1m0s")
		require.ErrorContains(t, run.Close(), "close did not return within 1s")
		close(release)
		synctest.Wait()
		require.Equal(t, data.opened.Load(), data.closed.Load())
	})
}

// A sample that owns something is encoded or closed, whatever ends the run.
func TestSamplesOfAStreamAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for stop := range 8 {
			books := &bookkeeping{}
			c := &cut{sizes: []int{20, 3, 20}, every: 1}
			c.next = func(context.Context, loader.Pass, int, int) (loader.Encoder, bool, error) {
				return books.lend(), true, nil
			}
			l := newCut(t, c, 4, loader.Options{Epochs: 1, Last: loader.Drop})
			mem := heap(t, l, 2)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			for range stop {
				_, err := read(l, run, mem)
				require.NoError(t, err)
			}
			require.NoError(t, run.Close())
			require.Equal(t, books.lent.Load(), books.encoded.Load()+books.closed.Load())
		}
	})
}

func TestAgreeThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		agree func(context.Context, int, error) (int, int, error)
		says  string
	}{
		"an error":       {func(context.Context, int, error) (int, int, error) { return 0, 0, errBad }, "agree: bad record"},
		"a panic":        {func(context.Context, int, error) (int, int, error) { panic(errBad) }, "agree: panic: bad record"},
		"Goexit":         {func(context.Context, int, error) (int, int, error) { runtime.Goexit(); return 0, 0, nil }, "agree: the goroutine was ended by runtime.Goexit"},
		"nonsense":       {func(_ context.Context, rows int, _ error) (int, int, error) { return rows + 1, rows, nil }, "a least of 5 and a most of 4, where this rank has 4 of at most 4"},
		"below itself":   {func(_ context.Context, rows int, _ error) (int, int, error) { return 0, rows - 1, nil }, "a most of 3"},
		"more than all":  {func(_ context.Context, rows int, _ error) (int, int, error) { return 0, 5, nil }, "a most of 5"},
		"negative":       {func(_ context.Context, rows int, _ error) (int, int, error) { return -2, rows, nil }, "a least of -2"},
		"another failed": {func(_ context.Context, rows int, _ error) (int, int, error) { return -1, rows, nil }, "another rank has failed"},
		"too few at all": {func(_ context.Context, rows int, _ error) (int, int, error) { return 3, rows, nil }, "fewer samples than one global batch"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c2 := &cut{sizes: []int{9, 9}, every: 1}
				l := newCut(t, c2, 4, loader.Options{Epochs: 1, Last: loader.Drop, Shard: loader.Shard{Count: 2}, Agree: c.agree})
				batches, err := readAll(t, l, loader.Cursor{}, 3)
				require.Empty(t, batches)
				require.ErrorContains(t, err, c.says)
				var failure *loader.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, loader.StageAgree, failure.Stage)
				require.Equal(t, c2.opened.Load(), c2.closed.Load())
			})
		})
	}
}

// One rank fails, at each step, wherever that is: the others end with ErrRankFailed or, where
// the function sends it along, with that failure. They have all steps that the failing one has,
// and none waits for ever, although each closes its run as soon as it has an error.
func TestAFailingRankEndsTheOthers(t *testing.T) {
	const shards, size = 3, 2
	for name, spoil := range map[string]func(c *cut, o *loader.Options, number int){
		"reader": func(c *cut, _ *loader.Options, number int) {
			c.next = func(_ context.Context, _ loader.Pass, shard, n int) (loader.Encoder, bool, error) {
				if numberOf(0, shard, n) == number {
					return nil, true, errBad
				}
				return nil, true, nil
			}
		},
		"shard": func(c *cut, o *loader.Options, number int) {
			o.Skips = true
			c.encode = func(_ context.Context, n int) error {
				if n == number {
					return errBad
				}
				return nil
			}
		},
		"worker": func(c *cut, _ *loader.Options, number int) {
			c.encode = func(_ context.Context, n int) error {
				if n == number {
					return errBad
				}
				return nil
			}
		},
	} {
		for _, telling := range []bool{false, true} {
			for at := range 9 {
				t.Run(fmt.Sprintf("%s/telling=%t/at=%d", name, telling, at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						v := newVote(shards)
						errs, steps := make([]error, shards), make([]int, shards)
						var ranks sync.WaitGroup
						for rank := range shards {
							c := &cut{sizes: []int{9, 9, 9}, every: 1}
							o := loader.Options{Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Index: rank, Count: shards}}
							o.Agree = v.agree
							if telling {
								o.Agree = v.agreeTelling
							}
							if rank == 1 {
								spoil(c, &o, numberOf(0, 1, at))
							}
							l := newCut(t, c, size, o)
							ranks.Go(func() {
								var batches []batch
								batches, errs[rank] = readAll(t, l, loader.Cursor{}, 3)
								steps[rank] = len(batches)
							})
						}
						ranks.Wait()
						require.ErrorIs(t, errs[1], errBad)
						require.Equal(t, at/size, steps[1])
						for _, rank := range []int{0, 2} {
							switch {
							case name == "worker" && errs[rank] == nil:
								// All had agreed on the end by then: with 3 slots a rank works that far ahead.
								require.GreaterOrEqual(t, at/size+3, 9/size+1)
							case telling:
								require.ErrorIs(t, errs[rank], errBad)
							default:
								require.ErrorIs(t, errs[rank], loader.ErrRankFailed)
							}
							require.GreaterOrEqual(t, steps[rank], steps[1])
							if name != "worker" {
								require.Equal(t, steps[1], steps[rank])
							}
						}
					})
				})
			}
		}
	}
}

func TestAgreeThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agree := func(ctx context.Context, _ int, _ error) (int, int, error) {
			<-ctx.Done()
			return 0, 0, ctx.Err()
		}
		l := newCut(t, &cut{sizes: []int{9, 9}}, 4, loader.Options{Last: loader.Exact, Shard: loader.Shard{Count: 2}, Agree: agree, StallTimeout: time.Second})
		_, err := readAll(t, l, loader.Cursor{}, 3)
		require.ErrorContains(t, err, "epoch 0, batch 0: agree: no batch for 1s")
	})
}

// Two failures in one step: the one at the lower row is told, whoever came first.
func TestTheLowestFailureOfAStreamIsTold(t *testing.T) {
	c := &cut{sizes: []int{9, 9}, every: 1}
	c.encode = func(_ context.Context, number int) error {
		if number == numberOf(0, 0, 1) {
			return errBad
		}
		return nil
	}
	later := errors.New("later")
	c.next = func(_ context.Context, _ loader.Pass, shard, n int) (loader.Encoder, bool, error) {
		if shard == 1 && n == 1 {
			return nil, true, later
		}
		return nil, true, nil
	}
	for _, ranks := range []int{1, 2} {
		o := loader.Options{Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Count: ranks}}
		if ranks == 2 { // and rank 0 has shard 0 only
			o.Agree = func(_ context.Context, rows int, _ error) (int, int, error) { return rows, rows, nil }
		}
		_, err := readAll(t, newCut(t, c, 4, o), loader.Cursor{}, 3)
		require.ErrorIs(t, err, errBad)
	}
}

// bookkeeping counts what becomes of samples that own something.
type bookkeeping struct{ lent, encoded, closed atomic.Int64 }

func (b *bookkeeping) lend() loader.Encoder {
	b.lent.Add(1)
	return ownedNumber{b}
}

type ownedNumber struct{ *bookkeeping }

func (o ownedNumber) Encode(_ context.Context, row *loader.Row) error {
	o.encoded.Add(1)
	writeNumber(7, row)
	return nil
}

func (o ownedNumber) Close() error {
	o.closed.Add(1)
	return nil
}
