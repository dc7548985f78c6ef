package prefetch_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// stream is data's samples one after the other; the iterator ends with err behind
// them, if it is not nil.
func stream(data canary, err error) loader.Iterable {
	var seq iter.Seq2[int, error] = func(yield func(int, error) bool) {
		for i := range data.n {
			if !yield(i, nil) {
				return
			}
		}
		if err != nil {
			yield(0, err)
		}
	}
	again := func(context.Context, loader.Pass) iter.Seq2[int, error] { return seq }
	return loader.FromSeqFunc(data.Fields(), again, func(ctx context.Context, i int, row *loader.Row) error {
		return data.Read(ctx, i, row)
	})
}

// overStream is r with a Prefetcher over data's stream.
func (r *rig) overStream(err error, batchSize int, lo loader.Options, po prefetch.Options) *loader.Loader {
	r.t.Helper()
	require.NoError(r.t, r.pf.Close())
	ld, failed := loader.NewIterable(stream(r.data, err), batchSize, lo)
	require.NoError(r.t, failed)
	r.pf, failed = prefetch.New(r.compute, ld, po)
	require.NoError(r.t, failed)
	return ld
}

// A stream's end is found only by asking for more: the tail is delivered all the
// same, every sample once whatever the workers, and every epoch is whole.
func TestTheTailOfAStreamIsDelivered(t *testing.T) {
	for _, c := range []struct {
		samples, batch int
		want           []int
	}{{130, 64, []int{64, 64, 2}}, {128, 64, []int{64, 64}}, {1, 64, []int{1}}, {10, 3, []int{3, 3, 3, 1}}} {
		for _, depth := range []int{1, 2} {
			for _, per := range []int{1, 3} {
				for _, workers := range []int{1, 4} {
					t.Run(fmt.Sprintf("samples=%d/batch=%d/depth=%d/batchespercopy=%d/workers=%d", c.samples, c.batch, depth, per, workers), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							lo := loader.Options{Workers: workers, Epochs: 2}
							po := prefetch.Options{Depth: depth, BatchesPerCopy: per, Memory: prefetch.Memory{HostSlots: 2 * per}}
							r := newRig(t, canary{n: c.samples, width: 7}, adversarial(time.Millisecond), c.batch, lo, po)
							r.overStream(nil, c.batch, lo, po)
							for epoch := range 2 {
								require.Equal(t, epoch, r.pf.Epoch())
								all := r.until(1<<30, "break")
								require.NoError(t, r.dev.Synchronize(t.Context()))
								var rows []int
								for i, got := range all {
									require.Equal(t, prefetch.Position{Epoch: epoch, Batch: i, First: int64(i * c.batch)}, got.at)
									require.NoError(t, r.verify(got))
									rows = append(rows, got.rows)
								}
								require.Equal(t, c.want, rows)
							}
							require.Empty(t, r.until(1, "break"), "and there is no third")
							r.close()
						})
					})
				}
			}
		}
	}
}

// A stream is gone on with where its state was taken, too.
func TestAStreamGoesOnWhereItWasLeft(t *testing.T) {
	for k := 1; k <= 7; k++ {
		synctest.Test(t, func(t *testing.T) {
			lo := loader.Options{Workers: 2, Epochs: 2}
			r := newRig(t, canary{n: 30, width: 7}, adversarial(time.Millisecond), 4, lo, prefetch.Options{})
			r.overStream(nil, 4, lo, prefetch.Options{})
			all := r.until(k, "break")
			state := r.pf.State()
			lo.Workers = 4
			r.overStream(nil, 4, lo, prefetch.Options{Depth: 1, Memory: prefetch.Memory{HostSlots: 1}})
			require.NoError(t, r.pf.Restore(state))
			for r.pf.Epoch() < 2 {
				all = append(all, r.until(k, "break")...)
			}
			r.sequence(all, 2)
			r.close()
		})
	}
}

func TestAStreamsErrorComesBehindItsSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lo := loader.Options{Workers: 2}
		r := newRig(t, canary{n: 30, width: 7}, adversarial(time.Millisecond), 4, lo, prefetch.Options{})
		r.overStream(&userError{30}, 4, lo, prefetch.Options{})
		n := 0
		var failed error
		for b, err := range r.pf.Batches(t.Context()) {
			if failed = err; err == nil {
				require.Equal(t, n, b.Position().Batch)
				n++
			}
		}
		require.Equal(t, 7, n, "the whole batches before it")
		var mine *userError
		require.ErrorAs(t, failed, &mine)
		var where *loader.Error
		require.ErrorAs(t, failed, &where)
		require.Equal(t, 7, where.Batch)
		r.close()
	})
}

// A dataset of a billion samples costs no more than a small one: nothing is made
// for each sample, and any place is reached at once.
func TestABillionSamplesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const samples = 1_000_000_000
		r := newRig(t, canary{n: samples, width: 4}, adversarial(0), 100, loader.Options{Shuffle: true, Workers: 2}, prefetch.Options{})
		for _, at := range []int64{0, samples / 2, samples - 100} {
			require.NoError(t, r.pf.Seek(3, at))
			all := r.until(1, "break")
			require.NoError(t, r.dev.Synchronize(t.Context()))
			require.Len(t, all, 1)
			require.Equal(t, at, all[0].at.First)
			require.NoError(t, r.verify(all[0]))
		}
		require.Equal(t, 4, r.pf.Epoch())
		r.close()
	})
}

// Nobody knows that a stream is at its end before it is asked for more. A state taken
// behind its last batch is gone on from all the same: with the next epoch's first, or,
// if there is none, with nothing.
func TestAStreamLeftBehindItsLastBatchGoesOnWithTheNextEpoch(t *testing.T) {
	for form, open := range pipelines {
		for _, c := range []struct {
			samples int
			last    loader.LastPolicy
			batches int
		}{{32, loader.Keep, 8}, {30, loader.Keep, 8}, {30, loader.Drop, 7}, {32, loader.Drop, 8}, {30, loader.Exact, 8}} {
			for _, epochs := range []int{0, 2} {
				for _, way := range []string{"range", "restore", "reader", "map"} {
					if form == "host" && way == "map" {
						continue
					}
					t.Run(fmt.Sprint(form, c, epochs, way), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							lo := loader.Options{Workers: 2, Epochs: epochs, Last: c.last}
							r := newRig(t, canary{n: c.samples, width: 7}, adversarial(0), 4, lo, prefetch.Options{})
							begin := func() {
								require.NoError(t, r.pf.Close())
								ld, err := loader.NewIterable(stream(r.data, nil), 4, lo)
								require.NoError(t, err)
								r.pf, err = open(r, ld)
								require.NoError(t, err)
							}
							begin()
							var all []reading
							for epoch := range 2 {
								n := 0
								if way == "map" {
									for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(0))) {
										require.NoError(t, err)
										all = append(all, got(res))
										if n++; n == c.batches {
											break
										}
									}
								} else {
									reader, err := r.pf.Open(t.Context())
									require.NoError(t, err)
									for range c.batches {
										b, err := reader.Next(t.Context())
										require.NoError(t, err)
										all = append(all, r.hand(b))
										b.Release()
									}
									if way == "reader" { // which is of one epoch, though it is begun again at its end
										require.NoError(t, r.pf.Quiesce(t.Context()))
										_, err = reader.Next(t.Context())
										require.Equal(t, prefetch.ErrEpochEnd, err)
										require.Equal(t, epoch+1, r.pf.Epoch())
									}
									require.NoError(t, reader.Close())
								}
								if way == "restore" {
									state := r.pf.State()
									begin()
									require.NoError(t, r.pf.Restore(state))
								}
							}
							require.Len(t, all, 2*c.batches)
							require.NoError(t, r.dev.Synchronize(t.Context()))
							for i, got := range all {
								require.Equal(t, prefetch.Position{Epoch: i / c.batches, Batch: i % c.batches, First: int64(i % c.batches * 4)}, got.at)
								require.NoError(t, r.verify(got))
							}
							if epochs == 2 {
								for range r.pf.Batches(t.Context()) {
									t.Error("there is no third")
								}
								require.Equal(t, 2, r.pf.Epoch())
							}
							r.close()
						})
					})
				}
			}
		}
	}
}

// A shuffle buffer whose random numbers follow from the pass is the same again: a state
// in mid-epoch is gone on from exactly, and every epoch has an order of its own.
func TestAShuffleBufferIsGoneOnWithExactly(t *testing.T) {
	const samples, buffer = 200, 50
	shuffled := func(_ context.Context, pass loader.Pass) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			random := rand.New(rand.NewPCG(pass.Seed, uint64(pass.Epoch)))
			var held []int
			for i := range samples {
				if len(held) < buffer {
					held = append(held, i)
					continue
				}
				k := random.IntN(buffer)
				if !yield(held[k], nil) {
					return
				}
				held[k] = i
			}
			for _, i := range held {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
	data := canary{n: samples, width: 3}
	orders := map[string]bool{}
	for _, seed := range []uint64{1, 2} {
		for stop := 1; stop < 40; stop += 6 {
			for _, wrap := range []bool{false, true} {
				open := func() *prefetch.Prefetcher {
					it := loader.FromSeqFunc(data.Fields(), shuffled, func(ctx context.Context, i int, row *loader.Row) error { return data.Read(ctx, i, row) })
					if wrap {
						it = struct{ loader.Iterable }{it}
					}
					ld, err := loader.NewIterable(it, 10, loader.Options{Epochs: 3, Seed: seed, Workers: 2})
					require.NoError(t, err)
					pf, err := prefetch.NewHost(ld, prefetch.Options{})
					require.NoError(t, err)
					return pf
				}
				pf, n := open(), 0
				var seen [3][]int64
				for pf.Epoch() < 3 {
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						epoch := b.Position().Epoch
						for row := range b.Len() {
							seen[epoch] = append(seen[epoch], int64(binary.LittleEndian.Uint64(b.Field("index").Bytes[8*row:])))
						}
						if n++; n == stop {
							break
						}
					}
					if n == stop {
						n++
						state := pf.State()
						require.NoError(t, pf.Close())
						pf = open() // another process
						require.NoError(t, pf.Restore(state))
					}
				}
				require.NoError(t, pf.Close())
				for _, epoch := range seen {
					orders[fmt.Sprint(epoch)] = true
					slices.Sort(epoch)
					for i, index := range epoch {
						require.EqualValues(t, i, index)
					}
					require.Len(t, epoch, samples)
				}
			}
		}
	}
	require.Len(t, orders, 2*3, "one for each seed and epoch, wherever it was stopped")
}
