package prefetch_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// dealt is canaries dealt out to so many shards: read in turn they come by their index.
type dealt struct {
	canary
	shards         int
	opened, closed *atomic.Int64
}

func deal(data canary, shards int) dealt {
	return dealt{data, shards, new(atomic.Int64), new(atomic.Int64)}
}

func (d dealt) Shards() int { return d.shards }

func (d dealt) Open(_ context.Context, _ loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	r := &dealtReader{dealt: d, next: shard}
	if mark != nil {
		var err error
		if r.next, err = strconv.Atoi(string(mark)); err != nil {
			return nil, err
		}
	}
	d.opened.Add(1)
	return r, nil
}

type dealtReader struct {
	dealt
	next int
}

func (r *dealtReader) Next(context.Context) (loader.Encoder, bool, error) {
	if r.next >= r.n {
		return nil, false, nil
	}
	e := oneCanary{r.canary, r.next}
	r.next += r.shards
	return e, true, nil
}

func (r *dealtReader) AppendMark(dst []byte) ([]byte, error) {
	return strconv.AppendInt(dst, int64(r.next), 10), nil
}

func (r *dealtReader) Close() error {
	r.closed.Add(1)
	return nil
}

type oneCanary struct {
	canary
	index int
}

func (e oneCanary) Encode(ctx context.Context, row *loader.Row) error {
	return e.Read(ctx, e.index, row)
}

// overShards is r with a Prefetcher over data's shards.
func (r *rig) overShards(data loader.Stream, batchSize int, lo loader.Options, po prefetch.Options) *loader.Loader {
	r.t.Helper()
	require.NoError(r.t, r.pf.Close())
	ld, failed := loader.NewStream(data, batchSize, lo)
	require.NoError(r.t, failed)
	r.pf, failed = prefetch.New(r.compute, ld, po)
	require.NoError(r.t, failed)
	return ld
}

// However a loop over shards is left, the next one goes on behind the last batch delivered;
// a Restore or a Seek to where it stands changes nothing and keeps what was read ahead.
func TestALoopOverShardsGoesOnWhereItWasLeft(t *testing.T) {
	for _, steps := range []int{0, 6} {
		for _, way := range []string{"break", "panic", "cancel", "restore", "seek"} {
			for shards := 1; shards <= 3; shards++ {
				t.Run(fmt.Sprintf("steps=%d/way=%s/shards=%d", steps, way, shards), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						// As many samples as the steps take: else the passes' ends show.
						data := deal(canary{n: 24, width: 5}, shards)
						lo := loader.Options{Workers: 2, Epochs: 3, Steps: steps}
						po := prefetch.Options{Depth: 2, BatchesPerCopy: 1 + shards%2}
						r := newRig(t, data.canary, adversarial(time.Millisecond), 4, loader.Options{Workers: 2}, po)
						r.overShards(data, 4, lo, po)
						var all []reading
						for len(all) < 18 {
							before := len(all)
							all = append(all, r.until(1+len(all)%3, way)...)
							require.Less(t, before, len(all))
						}
						require.NoError(t, r.dev.Synchronize(t.Context()))
						for i, got := range all {
							require.Equal(t, i/6, got.at.Epoch)
							require.Equal(t, i%6, got.at.Batch)
							if steps == 0 {
								require.EqualValues(t, i%6*4, got.at.First)
							}
							for row := range got.rows {
								require.EqualValues(t, (i*4+row)%24, binary.LittleEndian.Uint64(got.index[8*row:]))
							}
						}
						require.Empty(t, r.until(1, "break"), "and there is no fourth")
						if way == "restore" || way == "seek" {
							require.LessOrEqual(t, data.opened.Load(), int64(3*shards+3), "nothing was read twice")
						}
						r.close()
						require.Equal(t, data.opened.Load(), data.closed.Load())
					})
				})
			}
		}
	}
}

// Stopped at every batch, and once more, each time to go on from a saved state in another
// pipeline: what comes is the uninterrupted run.
func TestResumingShardsAtEveryBatchIsTheUninterruptedRun(t *testing.T) {
	const samples, batch, epochs, perEpoch = 23, 4, 2, 6
	resumed := func(t *testing.T, way int, from []byte, stop int) (all []int64, state []byte) {
		data := deal(canary{n: samples, width: 5}, 3)
		ld, err := loader.NewStream(data, batch, loader.Options{Epochs: epochs, Workers: 1 + way%3})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1 + way%4}})
		require.NoError(t, err)
		defer func() { require.NoError(t, pf.Close()) }()
		if from != nil {
			var st loader.State
			require.NoError(t, json.Unmarshal(from, &st))
			require.NoError(t, pf.Restore(st))
			require.NoError(t, pf.Restore(st), "restoring twice is restoring once")
			require.True(t, st.Equal(pf.State()))
		}
		batches := 0
		if stop > 0 {
			for b, err := range pf.All(t.Context()) {
				require.NoError(t, err)
				column, err := prefetch.Column[int64](b, "index")
				require.NoError(t, err)
				all = append(all, column...)
				if batches++; batches == stop {
					break
				}
			}
		}
		state, err = json.Marshal(pf.State())
		require.NoError(t, err)
		return all, state
	}
	for k := range epochs*perEpoch + 1 {
		synctest.Test(t, func(t *testing.T) {
			all, state := resumed(t, k, nil, k)
			second, state := resumed(t, k+7, state, 2)
			third, _ := resumed(t, k+13, state, epochs*perEpoch)
			all = append(append(all, second...), third...)
			require.Len(t, all, epochs*samples)
			for i, index := range all {
				require.EqualValues(t, i%samples, index)
			}
		})
	}
}

// A State asked for at any time, beside a loop, is a place that can be restored.
func TestAStateBesideALoopOverShards(t *testing.T) {
	ld, err := loader.NewStream(deal(canary{n: 4000, width: 5}, 3), 4, loader.Options{Epochs: 1, Workers: 2})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for last := int64(0); ; {
			st := pf.State()
			err := ld.Check(st)
			if err == nil && st.Position < last && st.Epoch == 0 {
				err = fmt.Errorf("position %d behind %d", st.Position, last)
			}
			if err != nil {
				failed <- err
				return
			}
			last = st.Position
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	n := 0
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		n += b.Len()
	}
	close(done)
	require.NoError(t, <-failed)
	require.Equal(t, 4000, n)
	require.NoError(t, pf.Close())
}

func TestASeekOverShards(t *testing.T) {
	ld, err := loader.NewStream(deal(canary{n: 20, width: 5}, 2), 4, loader.Options{Epochs: 3})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	require.Equal(t, pf.Plan().Workers+2+2, pf.Plan().Goroutines, "two of which read the shards")
	var bad *loader.StateError
	require.ErrorAs(t, pf.Seek(0, 8), &bad)
	require.ErrorContains(t, pf.Seek(0, 8), "an epoch's beginning, or a place of a State")
	require.ErrorAs(t, pf.Seek(4, 0), &bad)
	require.NoError(t, pf.Seek(2, 0))
	n := 0
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, 2, b.Position().Epoch)
		n += b.Len()
	}
	require.Equal(t, 20, n)
	require.NoError(t, pf.Close())
}

// Two ranks save what they have; one goes on from both.
func TestRanksOverShardsAreOneStateTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := deal(canary{n: 40, width: 5}, 4)
		pipe := func(ranks, rank int) *prefetch.Prefetcher {
			ld, err := loader.NewStream(data, 8/ranks, loader.Options{Steps: 5, Epochs: 1, Shard: loader.Shard{Index: rank, Count: ranks}, Last: loader.Drop})
			require.NoError(t, err)
			pf, err := prefetch.NewHost(ld, prefetch.Options{})
			require.NoError(t, err)
			return pf
		}
		var seen []int64
		take := func(pf *prefetch.Prefetcher, most int) {
			for b, err := range pf.All(t.Context()) {
				require.NoError(t, err)
				column, err := prefetch.Column[int64](b, "index")
				require.NoError(t, err)
				seen = append(seen, column...)
				if most--; most == 0 {
					break
				}
			}
		}
		var states []loader.State
		for rank := range 2 {
			pf := pipe(2, rank)
			take(pf, 2)
			states = append(states, pf.State())
			err := pf.Restore(pf.State())
			var bad *loader.StateError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, "the other 2 are in the states of other ranks; see MergeStates")
			require.NoError(t, pf.Close())
		}
		_, err := loader.MergeStates(states[0])
		require.ErrorContains(t, err, "those of all 4 shards")
		merged, err := loader.MergeStates(states[1], states[0])
		require.NoError(t, err)
		require.EqualValues(t, 16, merged.Position)
		pf := pipe(1, 0)
		require.NoError(t, pf.Restore(merged))
		take(pf, 100)
		require.NoError(t, pf.Close())
		require.Len(t, seen, 40)
		all := map[int64]bool{}
		for _, index := range seen {
			all[index] = true
		}
		require.Len(t, all, 40)
	})
}

// A flushed batch reaches its consumer while its source waits for more, also where several
// batches share a copy.
func TestAFlushedBatchIsNotHeldBack(t *testing.T) {
	for _, per := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			more := make(chan int)
			data := canary{n: 40, width: 5}
			seq := func(yield func(int, error) bool) {
				for index := range more {
					if !yield(index, nil) || !yield(0, loader.Flush) {
						return
					}
				}
			}
			lo, po := loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{Depth: 3, BatchesPerCopy: per}
			r := newRig(t, data, adversarial(time.Millisecond), 4, lo, po)
			require.NoError(t, r.pf.Close())
			ld, err := loader.NewIterable(loader.FromSeq(data.Fields(), seq, func(ctx context.Context, i int, row *loader.Row) error {
				return data.Read(ctx, i, row)
			}), 4, lo)
			require.NoError(t, err)
			r.pf, err = prefetch.New(r.compute, ld, po)
			require.NoError(t, err)
			rd, err := r.pf.Open(t.Context())
			require.NoError(t, err)
			for i := range 10 {
				more <- i
				if i%3 == 2 { // the next travels with it, or not
					more <- i + 10
				}
				b, err := rd.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, b.Len())
				b.Release()
				if i%3 == 2 {
					b, err = rd.Next(t.Context())
					require.NoError(t, err)
					b.Release()
				}
			}
			close(more)
			_, err = rd.Next(t.Context())
			require.ErrorIs(t, err, prefetch.ErrEpochEnd)
			require.NoError(t, rd.Close())
			r.close()
		})
	}
}
