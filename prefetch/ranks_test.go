package prefetch_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A step is what one rank got: the samples of its valid rows, and the number of all.
type step struct {
	samples []int
	rows    int
}

// rank runs the rest of epoch 0 on one rank from a state, at most stop batches, and
// checks the bytes of every row.
func rank(t *testing.T, samples, batchSize int, lo loader.Options, from *loader.State, stop int) ([]step, loader.State) {
	t.Helper()
	r := newRig(t, canary{n: samples, width: 3}, adversarial(time.Millisecond), batchSize, lo, prefetch.Options{Depth: 2, Memory: prefetch.Memory{HostSlots: 2}})
	if from != nil {
		require.NoError(t, r.pf.Restore(*from))
	}
	all := r.until(stop, "break")
	require.NoError(t, r.dev.Synchronize(t.Context()))
	var steps []step
	for _, got := range all {
		require.NoError(t, r.verify(got))
		s := step{rows: got.rows}
		for row := range got.valid {
			s.samples = append(s.samples, int(binary.LittleEndian.Uint64(got.index[8*row:])))
		}
		steps = append(steps, s)
	}
	state := r.pf.State()
	r.close()
	return steps, state
}

// world is rank for every rank of one world; the states are the same on all.
func world(t *testing.T, samples, ranks, batchSize int, lo loader.Options, from *loader.State, stop int) ([][]step, loader.State) {
	t.Helper()
	all := make([][]step, ranks)
	var state loader.State
	for i := range ranks {
		lo.Shard = loader.Shard{Index: i, Count: ranks}
		steps, st := rank(t, samples, batchSize, lo, from, stop)
		if i > 0 {
			require.Equal(t, state, st, "a state of any rank restores all")
			require.Len(t, steps, len(all[0]), "equally many steps")
		}
		all[i], state = steps, st
	}
	return all, state
}

// delivered are the valid samples of all ranks, step by step.
func delivered(all [][]step) (steps [][]int) {
	for s := range all[0] {
		var samples []int
		for _, rank := range all {
			samples = append(samples, rank[s].samples...)
		}
		steps = append(steps, samples)
	}
	return steps
}

func TestRanksMakeEquallyManySteps(t *testing.T) {
	for _, c := range []struct {
		samples, ranks, batch int
		last                  loader.LastPolicy
		valid                 [][]int // by rank and step
		rows                  [][]int
	}{
		{4097, 4, 1024, loader.Drop, [][]int{{1024}, {1024}, {1024}, {1024}}, [][]int{{1024}, {1024}, {1024}, {1024}}},
		{4097, 4, 1024, loader.Pad, [][]int{{1024, 1}, {1024, 0}, {1024, 0}, {1024, 0}}, [][]int{{1024, 1024}, {1024, 1024}, {1024, 1024}, {1024, 1024}}},
		{4097, 4, 1024, loader.Exact, [][]int{{1024, 1}, {1024, 0}, {1024, 0}, {1024, 0}}, [][]int{{1024, 1}, {1024, 0}, {1024, 0}, {1024, 0}}},
		{10, 4, 3, loader.Pad, [][]int{{3}, {3}, {3}, {1}}, [][]int{{3}, {3}, {3}, {3}}},
		{10, 3, 2, loader.Drop, [][]int{{2}, {2}, {2}}, [][]int{{2}, {2}, {2}}},
		{10, 3, 2, loader.Exact, [][]int{{2, 2}, {2, 2}, {2, 0}}, [][]int{{2, 2}, {2, 2}, {2, 0}}},
		{23, 2, 4, loader.Pad, [][]int{{4, 4, 4}, {4, 4, 3}}, [][]int{{4, 4, 4}, {4, 4, 4}}},
	} {
		t.Run(fmt.Sprintf("samples=%d/ranks=%d/batch=%d/%v", c.samples, c.ranks, c.batch, c.last), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, _ := world(t, c.samples, c.ranks, c.batch, loader.Options{Shuffle: true, Seed: 3, Last: c.last, Workers: 2}, nil, 1<<30)
				for rank, steps := range all {
					for s, got := range steps {
						require.Equal(t, c.valid[rank][s], len(got.samples), "rank %d step %d", rank, s)
						require.Equal(t, c.rows[rank][s], got.rows, "rank %d step %d", rank, s)
					}
					require.Len(t, steps, len(c.valid[rank]))
				}
				samples := slices.Concat(delivered(all)...)
				slices.Sort(samples)
				if c.last != loader.Drop {
					require.Len(t, samples, c.samples)
				}
				require.Len(t, slices.Compact(samples), len(samples), "no sample twice")
			})
		})
	}
}

func TestTooFewSamplesForTheWorldFailBeforeTheFirstStep(t *testing.T) {
	for _, samples := range []int{0, 3, 10} {
		_, err := loader.New(canary{n: samples, width: 3}, 3, loader.Options{Last: loader.Drop, Shard: loader.Shard{Count: 4}})
		require.Error(t, err, "%d samples", samples)
	}
}

// Another number of ranks goes on where the state of any one rank was taken: no
// sample is lost or seen twice, and with the same global batch the steps are the
// same.
func TestAnotherWorldGoesOnAtTheCursor(t *testing.T) {
	const samples = 61
	lo := loader.Options{Shuffle: true, Seed: 8, Last: loader.Exact, Workers: 2}
	synctest.Test(t, func(t *testing.T) {
		whole, _ := world(t, samples, 2, 6, lo, nil, 1<<30)
		want := delivered(whole)
		for stop := range 5 {
			before, state := world(t, samples, 2, 6, lo, nil, max(stop, 1))
			if stop == 0 {
				before, state = [][]step{nil}, loader.State{Version: state.Version, Samples: samples, Fields: state.Fields, Fingerprint: state.Fingerprint, Seed: 8, Shuffle: true}
			}
			for _, next := range []struct{ ranks, batch int }{{3, 4}, {12, 1}, {1, 12}, {4, 2}, {5, 7}} {
				after, _ := world(t, samples, next.ranks, next.batch, lo, &state, 1<<30)
				got := append(delivered(before), delivered(after)...)
				require.Equal(t, slices.Concat(want...), slices.Concat(got...), "the order is the same")
				if next.ranks*next.batch == 12 {
					require.Equal(t, want, got)
				}
			}
		}
	})
}

// A failed sample's row holds its substitute, is listed, and no position shifts.
func TestSubstitutesArriveAndAreListed(t *testing.T) {
	data := canary{n: 40, width: 5, read: failing(3, 7)}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, data, adversarial(time.Millisecond),
			4, loader.Options{Shuffle: true, Seed: 1, Workers: 3, OnError: loader.Substitute, MaxSubstituted: 2}, prefetch.Options{})
		listed := map[int]int{}
		var all []reading
		var rows []loader.Substitution
		order := r.ld.Order(0)
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, 4, b.Len())
			require.Equal(t, 4, b.Valid())
			for _, s := range b.Substituted() {
				var mine *userError
				require.ErrorAs(t, s.Err, &mine)
				require.Equal(t, s.Sample, mine.sample)
				require.Equal(t, order.At(s.Position), s.Sample)
				listed[s.Sample]++
				rows = append(rows, s)
				all = append(all, r.read(b, 0))
			}
		}
		require.Equal(t, map[int]int{3: 1, 7: 1}, listed)
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for i, s := range rows {
			want := make([]byte, 5)
			fill(want, s.Substitute)
			require.EqualValues(t, s.Substitute, binary.LittleEndian.Uint64(all[i].index[8*s.Row:]))
			require.Equal(t, want, all[i].bytes[5*s.Row:][:5])
		}
		r.close()
	})
	data.read = failing(3, 7, 20)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, data, adversarial(0), 4, loader.Options{Workers: 3, OnError: loader.Substitute, MaxSubstituted: 2}, prefetch.Options{})
		var failed error
		n := 0
		for _, err := range r.pf.Batches(t.Context()) {
			if failed = err; err == nil {
				n++
			}
		}
		var one *loader.SubstituteError
		require.ErrorAs(t, failed, &one)
		require.Equal(t, 5, n, "those before the third failure")
		r.close()
	})
}
