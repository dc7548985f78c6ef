package prefetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// once is data's samples from an iterator that gives each of them once.
type once struct {
	data    canary
	given   int // the iterator's
	encoded []atomic.Int32
	ended   atomic.Bool
}

func newOnce(data canary) *once { return &once{data: data, encoded: make([]atomic.Int32, data.n)} }

func (o *once) iterable() loader.Iterable {
	var seq iter.Seq2[int, error] = func(yield func(int, error) bool) {
		defer o.ended.Store(true)
		for o.given < o.data.n {
			o.given++
			if !yield(o.given-1, nil) {
				return
			}
		}
	}
	return loader.FromSeq(o.data.Fields(), seq, func(ctx context.Context, i int, row *loader.Row) error {
		o.encoded[i].Add(1)
		return o.data.Read(ctx, i, row)
	})
}

// pipelines are the kinds there are, over the same loader.
var pipelines = map[string]func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error){
	"device": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{BatchesPerCopy: 1, Memory: prefetch.Memory{HostSlots: 2}})
	},
	"several in a copy": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{BatchesPerCopy: 3, Memory: prefetch.Memory{HostSlots: 6}})
	},
	"transform": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{Transform: passOn(cpuSpin, time.Millisecond, r.data)})
	},
	"pageable": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{Depth: 2, Memory: prefetch.Memory{Pageable: true}})
	},
	"host": func(_ *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
	},
}

// hand is a reading of a batch in device or host memory.
func (r *rig) hand(b prefetch.Batch) reading {
	if b.Stream() != nil {
		return r.read(b, time.Millisecond)
	}
	return reading{at: b.Position(), rows: b.Len(), valid: b.Valid(),
		index: bytes.Clone(b.Field("index").Bytes), bytes: bytes.Clone(b.Field("bytes").Bytes)}
}

// However a range over a source that gives its samples once is left, the next one goes
// on with the very next sample, and none is encoded twice.
func TestASourceOfOnePassLosesNothingWhenARangeIsLeft(t *testing.T) {
	leave := errors.New("leave")
	for form, open := range pipelines {
		for _, way := range []string{"break", "panic", "context", "quiesce", "reader", "map"} {
			if form == "host" && way == "map" {
				continue
			}
			t.Run(form+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 122, width: 7}
					source := newOnce(data)
					r := newRig(t, data, adversarial(time.Millisecond), 4, loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{})
					ld, err := loader.NewIterable(source.iterable(), 4, loader.Options{Workers: 2, Epochs: 1})
					require.NoError(t, err)
					require.NoError(t, r.pf.Close())
					r.pf, err = open(r, ld)
					require.NoError(t, err)
					var all []reading
					for try := 1; r.pf.Epoch() < 1; try++ {
						func() {
							defer func() {
								if v := recover(); v != nil && v != leave {
									panic(v)
								}
							}()
							ctx, cancel := context.WithCancel(t.Context())
							defer cancel()
							switch way {
							case "map":
								for res, err := range r.pf.Map(ctx, prefetch.Output{Fields: data.Fields()}, r.echo(always(time.Millisecond))) {
									require.NoError(t, err)
									all = append(all, got(res))
									if len(all)%3 == 0 {
										break
									}
								}
								return
							case "reader":
								reader, err := r.pf.Open(ctx)
								require.NoError(t, err)
								for range try {
									if b, err := reader.Next(ctx); err == nil {
										all = append(all, r.hand(b))
										b.Release()
									}
								}
								require.NoError(t, reader.Close())
								return
							}
							for b, err := range r.pf.Batches(ctx) {
								if err != nil {
									require.ErrorIs(t, err, context.Canceled)
									require.Equal(t, "context", way)
									return
								}
								all = append(all, r.hand(b))
								if len(all)%3 > 0 {
									continue
								}
								synctest.Wait() // all that can be read ahead is
								switch way {
								case "break":
									return
								case "panic":
									panic(leave)
								case "context":
									cancel()
								case "quiesce":
									require.NoError(t, r.pf.Quiesce(ctx))
								}
							}
						}()
					}
					require.NoError(t, r.dev.Synchronize(t.Context()))
					require.Len(t, all, 31)
					for i, got := range all {
						require.Equal(t, prefetch.Position{Batch: i, First: int64(4 * i)}, got.at)
						require.NoError(t, r.verify(got))
					}
					for i := range source.encoded {
						require.EqualValues(t, 1, source.encoded[i].Load())
					}
					require.True(t, source.ended.Load())
					r.close()
				})
			})
		}
	}
}

// A malformed request fails one range, in which nobody gets it, and no other request.
func TestASourceOfOnePassGoesOnBehindAMalformedRequest(t *testing.T) {
	for form, open := range pipelines {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := canary{n: 60, width: 7, read: func(_ context.Context, i int) error {
					if i%10 == 7 {
						return &userError{i}
					}
					return nil
				}}
				source := newOnce(data)
				r := newRig(t, data, adversarial(time.Millisecond), 4, loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{})
				ld, err := loader.NewIterable(source.iterable(), 4, loader.Options{Workers: 2, Epochs: 1})
				require.NoError(t, err)
				require.NoError(t, r.pf.Close())
				r.pf, err = open(r, ld)
				require.NoError(t, err)
				var all []reading
				var failed []int
				for r.pf.Epoch() < 1 {
					for b, err := range r.pf.Batches(t.Context()) {
						var mine *userError
						if err != nil {
							require.ErrorAs(t, err, &mine)
							failed = append(failed, mine.sample)
							require.LessOrEqual(t, len(failed), 6, "each is reported once")
							continue
						}
						all = append(all, r.hand(b))
						if len(all)%2 == 0 {
							synctest.Wait() // a failure that nobody has heard of yet is not forgotten
							break
						}
					}
				}
				require.Equal(t, []int{7, 17, 27, 37, 47, 57}, failed)
				require.NoError(t, r.dev.Synchronize(t.Context()))
				next := 0
				for _, got := range all {
					for row := range got.rows {
						if next%10 == 7 {
							next++
						}
						require.EqualValues(t, next, got.index[8*row])
						next++
					}
				}
				require.Equal(t, 60, next)
				r.close()
			})
		})
	}
}

// A source that gives its samples once is one pipeline's, and read from where it stands.
func TestASourceOfOnePassIsForOnePipelineAndPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused *loader.OnePassError
		lo := loader.Options{Workers: 1, Epochs: 1}
		source := newOnce(canary{n: 40, width: 7})
		it := source.iterable()
		ld, err := loader.NewIterable(it, 4, lo)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		for _, again := range []func() (*loader.Loader, error){
			func() (*loader.Loader, error) { return ld, nil },
			func() (*loader.Loader, error) { return loader.NewIterable(it, 4, lo) },
		} {
			ld, err := again()
			require.NoError(t, err)
			_, err = prefetch.NewHost(ld, prefetch.Options{})
			require.ErrorAs(t, err, &refused)
		}
		for range pf.Batches(t.Context()) {
			break
		}
		state := pf.State()
		require.EqualValues(t, 4, state.Position)
		require.NoError(t, pf.Restore(state), "where it stands")
		require.ErrorAs(t, pf.Seek(0, 0), &refused)
		require.ErrorAs(t, pf.Seek(0, 8), &refused)
		require.ErrorAs(t, pf.Seek(1, 0), &refused)
		require.Equal(t, loader.Cursor{Position: 4}, refused.At)
		require.Equal(t, state, pf.State())

		fresh, err := loader.NewIterable(newOnce(canary{n: 40, width: 7}).iterable(), 4, lo)
		require.NoError(t, err)
		other, err := prefetch.NewHost(fresh, prefetch.Options{})
		require.NoError(t, err)
		require.ErrorAs(t, other.Restore(state), &refused, "in another process")
		require.ErrorContains(t, refused, "at its beginning and cannot be read from epoch 0, position 4")
		require.NoError(t, other.Close())

		n := 0
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.EqualValues(t, 4+4*n, b.Position().First)
			n++
		}
		require.Equal(t, 9, n)
		require.NoError(t, pf.Restore(pf.State()), "at the end too")
		for range pf.Batches(t.Context()) {
			t.Error("a second pass")
		}
		require.NoError(t, pf.Close())
		_, err = prefetch.NewHost(ld, prefetch.Options{})
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "closed")
	})
}

// A Prefetcher that is closed ends the iterator, and what it has read and nobody gets.
func TestClosingAPrefetcherEndsASourceOfOnePass(t *testing.T) {
	for form, open := range pipelines {
		for _, leave := range []bool{false, true} {
			t.Run(fmt.Sprint(form, leave), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 1000, width: 7}
					source := newOnce(data)
					r := newRig(t, data, cpu.Options{}, 4, loader.Options{}, prefetch.Options{})
					ld, err := loader.NewIterable(source.iterable(), 4, loader.Options{Workers: 2, Epochs: 1})
					require.NoError(t, err)
					require.NoError(t, r.pf.Close())
					r.pf, err = open(r, ld)
					require.NoError(t, err)
					for b, err := range r.pf.Batches(t.Context()) {
						if err != nil {
							require.ErrorIs(t, err, prefetch.ErrClosed)
							break
						}
						if leave {
							break
						}
						if b.Position().Batch == 3 {
							b.Release()
							require.NoError(t, r.pf.Close())
						}
					}
					r.close()
					require.True(t, source.ended.Load())
				})
			})
		}
	}
}

// An error that is not a sample's own ends no sample, also where it wraps the failure of
// another pipeline's sample at the same position.
func TestASourceOfOnePassLosesNothingToAnotherPipelinesFailure(t *testing.T) {
	foreign := fmt.Errorf("a side input: %w", &loader.Error{Sample: 7, Position: 7, Stage: loader.StageEncode, Err: errors.New("not ours")})
	for _, form := range []string{"transform", "host transform", "step"} {
		t.Run(form, func(t *testing.T) {
			data := canary{n: 20, width: 8}
			r := newRig(t, data, adversarial(time.Millisecond), 2, loader.Options{}, prefetch.Options{})
			ld, err := loader.NewIterable(newOnce(data).iterable(), 2, loader.Options{Workers: 2, Epochs: 1})
			require.NoError(t, err)
			require.NoError(t, r.pf.Close())
			failed := false
			failOnce := func(at prefetch.Position) error {
				if at.Batch == 1 && !failed {
					failed = true
					return foreign
				}
				return nil
			}
			pass := passOn(cpuSpin, 0, data)
			apply := pass.Apply
			pass.Apply = func(s *device.Stream, out, in prefetch.Fields) error {
				if err := failOnce(in.Position()); err != nil {
					return err
				}
				return apply(s, out, in)
			}
			switch form {
			case "transform":
				r.pf, err = prefetch.New(r.compute, ld, prefetch.Options{Transform: pass})
			case "host transform":
				r.pf, err = prefetch.NewHost(ld, prefetch.Options{Transform: pass})
			case "step":
				r.pf, err = prefetch.New(r.compute, ld, prefetch.Options{})
			}
			require.NoError(t, err)
			samples, failures := 0, 0
			note := func(n int, err error) {
				if err != nil {
					require.ErrorIs(t, err, foreign)
					failures++
				}
				samples += n
			}
			for r.pf.Epoch() < 1 {
				if form != "step" {
					for b, err := range r.pf.Batches(t.Context()) {
						if err != nil {
							note(0, err)
							break
						}
						require.EqualValues(t, samples, b.Position().First)
						note(b.Len(), nil)
					}
					continue
				}
				echo := r.echo(always(0))
				for x, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, func(b prefetch.Batch, out prefetch.Fields) error {
					if err := failOnce(b.Position()); err != nil {
						return err
					}
					return echo(b, out)
				}) {
					if err != nil {
						note(0, err)
						break
					}
					require.EqualValues(t, byte(samples), x.Field("index").Bytes[0])
					note(x.Len(), nil)
				}
			}
			require.Equal(t, 1, failures)
			require.Equal(t, 20, samples)
			r.close()
		})
	}
}
