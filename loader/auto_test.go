//go:build !race

// A run in virtual time is as much work as the samples that it models: minutes under the race
// detector, which other tests of Auto run under.

package loader_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// modelled is a dataset whose samples take modelled time, with room for so many Reads at
// once where room is not nil.
type modelled struct {
	n      int
	takes  func(index int) time.Duration
	room   chan struct{}
	inside *atomic.Int64
	most   *atomic.Int64
}

func (d modelled) Len() int { return d.n }
func (d modelled) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{4}}}
}

func (d modelled) Read(ctx context.Context, index int, row *loader.Row) error {
	for n := d.inside.Add(1); ; {
		most := d.most.Load()
		if n <= most || d.most.CompareAndSwap(most, n) {
			break
		}
	}
	defer d.inside.Add(-1)
	if d.room != nil {
		d.room <- struct{}{}
		defer func() { <-d.room }()
	}
	time.Sleep(d.takes(index))
	copy(row.Bytes("x"), []byte{1, 2, 3, 4})
	return nil
}

// modelledLoad is how a program reads and consumes in virtual time.
type modelledLoad struct {
	name    string
	takes   func(index int) time.Duration
	room    int
	batch   int
	slots   int
	consume time.Duration // for each batch
	batches int
	budget  loader.Budget
}

// elapsed is how long the load takes with a number of workers.
func (l *modelledLoad) elapsed(t *testing.T, workers, batches int) (took time.Duration, stats loader.Stats, most int64) {
	synctest.Test(t, func(t *testing.T) {
		d := modelled{n: l.batch * batches, takes: l.takes, inside: new(atomic.Int64), most: new(atomic.Int64)}
		if l.room > 0 {
			d.room = make(chan struct{}, l.room)
		}
		o := loader.Options{Workers: workers, Epochs: 1, Last: loader.Drop}
		if workers == loader.Auto {
			o.Budget = l.budget
		}
		ld, err := loader.New(d, l.batch, o)
		require.NoError(t, err)
		mem := heap(t, ld, l.slots)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		began := time.Now()
		for {
			f, err := run.Next(t.Context())
			if err != nil {
				require.ErrorIs(t, err, loader.ErrEpochEnd)
				break
			}
			time.Sleep(l.consume)
			mem.Put(f.Slot)
		}
		took, stats, most = time.Since(began), run.Stats(), d.most.Load()
		require.NoError(t, run.Close())
	})
	return took, stats, most
}

// Auto is within 5% of the best fixed number of workers, and never over its budget.
func TestAutoIsAsFastAsTheBestFixedNumberOfWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // how many workers there are at first depends on it
	const ms = time.Millisecond
	always := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	random := func(draw func(r *rand.Rand) time.Duration) func(int) time.Duration {
		return func(i int) time.Duration { return draw(rand.New(rand.NewPCG(uint64(i), 7))) }
	}
	for _, l := range []modelledLoad{
		{name: "steady, waiting Reads", takes: always(5 * ms), batch: 32, slots: 16, batches: 16000, budget: loader.Budget{Workers: 100}},
		{name: "jittery", takes: random(func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(5*ms)) }),
			room: 100, batch: 32, slots: 16, batches: 6000},
		{name: "bimodal", takes: random(func(r *rand.Rand) time.Duration {
			if r.IntN(20) == 0 {
				return 50 * ms
			}
			return 2 * ms
		}), batch: 32, slots: 16, batches: 6000},
		{name: "slow producer", takes: always(200 * ms), room: 8, batch: 8, slots: 8, batches: 1500},
		{name: "slow consumer", takes: always(5 * ms), batch: 16, slots: 8, consume: 20 * ms, batches: 1000},
		{name: "two at once", takes: always(ms), room: 2, batch: 16, slots: 8, batches: 2000},
		{name: "a change in mid-run", takes: func(i int) time.Duration {
			if i < 40000 {
				return ms / 2
			}
			return 20 * ms
		}, batch: 32, slots: 16, batches: 10000},
	} {
		t.Run(l.name, func(t *testing.T) {
			best := time.Duration(1 << 62)
			for _, workers := range []int{2, 8, 32, 100, 400} {
				if l.budget.Workers > 0 && workers > l.budget.Workers {
					continue
				}
				took, _, _ := l.elapsed(t, workers, l.batches)
				best = min(best, took)
			}
			took, stats, most := l.elapsed(t, loader.Auto, l.batches)
			t.Logf("%.3f of the best, %d workers, most %d", took.Seconds()/best.Seconds(), stats.Workers, most)
			require.LessOrEqual(t, took.Seconds(), 1.05*best.Seconds())
			if l.budget.Workers > 0 {
				require.LessOrEqual(t, most, int64(l.budget.Workers))
			}
		})
	}
}
