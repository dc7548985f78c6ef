package loader_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// priced is a dataset whose samples take time, and that says how much if it is a Coster.
type priced struct {
	numbers
	takes func(index int) time.Duration
}

func (d priced) Read(ctx context.Context, index int, row *loader.Row) error {
	time.Sleep(d.takes(index))
	return d.numbers.Read(ctx, index, row)
}

type coster struct {
	priced
	cost func(index int) float64
}

func (d coster) Cost(index int) float64 {
	if d.cost != nil {
		return d.cost(index)
	}
	return d.takes(index).Seconds()
}

// perEpoch is how long each epoch takes, at the rate at which batches are delivered.
func perEpoch(t *testing.T, ds loader.Dataset, batch, workers, slots, epochs int) (took []time.Duration) {
	ld, err := loader.New(ds, batch, loader.Options{Workers: workers, Epochs: epochs, Shuffle: true, Last: loader.Drop})
	require.NoError(t, err)
	mem := heap(t, ld, slots)
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	began := time.Now()
	for len(took) < epochs {
		b, err := read(ld, run, mem)
		if err == nil {
			for i, index := range b.indices {
				require.Equal(t, int64(ld.Order(b.filled.Epoch).At(b.positions[i])), index, "delivered in its turn")
			}
			continue
		}
		require.ErrorIs(t, err, loader.ErrEpochEnd)
		took = append(took, time.Since(began))
		began = time.Now()
	}
	require.NoError(t, run.Close())
	require.Equal(t, slots, mem.Free())
	return took
}

// With a window of four batches order costs nearly nothing where few samples cost much: from
// the first epoch on if Cost is given, from the second on if it is learnt.
func TestDearSamplesBeginEarly(t *testing.T) {
	const ms = time.Millisecond
	draw := func(i int) *rand.Rand { return rand.New(rand.NewPCG(uint64(i), 3)) }
	for _, l := range []struct {
		name                   string
		samples, batch, worker int
		takes                  func(i int) time.Duration
	}{
		{"3-D segmentation", 1024, 8, 8, func(i int) time.Duration { // volumes of very different sizes
			return min(time.Duration(math.Exp(0.7*draw(i).NormFloat64())*float64(400*ms)), 1900*ms)
		}},
		{"detection", 8192, 32, 16, func(i int) time.Duration { // some pictures have mosaics of others
			if r := draw(i); r.IntN(20) == 0 {
				return 80*ms + time.Duration(r.IntN(80))*ms
			}
			return 15 * ms
		}},
		{"speech", 4096, 16, 16, func(i int) time.Duration { // seconds of sound, few of them long
			return min(time.Duration(draw(i).ExpFloat64()*float64(30*ms)), 110*ms) + ms
		}},
	} {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sum time.Duration
				for i := range l.samples {
					sum += l.takes(i)
				}
				ideal := sum.Seconds() / float64(l.worker)
				ds := priced{numbers: numbers{n: l.samples}, takes: l.takes}
				learnt := perEpoch(t, ds, l.batch, l.worker, 4, 4)
				given := perEpoch(t, coster{priced: ds}, l.batch, l.worker, 4, 4)
				for epoch := range 4 {
					t.Logf("epoch %d: %.3f of the ideal learnt, %.3f given", epoch, learnt[epoch].Seconds()/ideal, given[epoch].Seconds()/ideal)
				}
				for epoch := range 3 { // behind the last one nothing is read ahead
					require.LessOrEqual(t, given[epoch].Seconds(), 1.05*ideal)
				}
				require.Greater(t, learnt[0].Seconds(), 1.01*ideal)
				require.LessOrEqual(t, learnt[1].Seconds(), 1.05*ideal)
				require.LessOrEqual(t, learnt[2].Seconds(), 1.05*ideal)
			})
		})
	}
}

// A Cost that does not return is a failure of its batch, with the sample.
func TestACostThatFailsIsReported(t *testing.T) {
	for name, cost := range map[string]func(int) float64{
		"panic":  func(i int) float64 { panic(errors.New("no cost")) },
		"Goexit": func(i int) float64 { runtime.Goexit(); return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			ds := coster{priced: priced{numbers: numbers{n: 40}, takes: func(int) time.Duration { return 0 }}}
			ds.cost = func(i int) float64 {
				if i == 21 {
					cost(i)
				}
				return 1
			}
			ld, err := loader.New(ds, 4, loader.Options{Workers: 2, Epochs: 1})
			require.NoError(t, err)
			batches, err := readAll(t, ld, loader.Cursor{}, 3)
			require.Len(t, batches, 5, "those before are delivered")
			var failure *loader.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, loader.StageCost, failure.Stage)
			require.Equal(t, 21, failure.Sample)
		})
	}
}

// However early a sample fails, the failure that is reported is that at the lowest position,
// behind all batches before it.
func TestADearSampleThatFailsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		bad := errors.New("bad")
		data := numbers{n: 40, before: func(_ context.Context, i int, _ *loader.Row) error {
			if i == 17 || i == 21 {
				return bad
			}
			return nil
		}}
		ds := coster{priced: priced{numbers: data, takes: func(i int) time.Duration {
			if i == 21 {
				return 0
			}
			return 10 * ms
		}}}
		ds.cost = func(i int) float64 {
			if i == 21 {
				return 100
			}
			return 1
		}
		ld, err := loader.New(ds, 8, loader.Options{Workers: 2, Epochs: 1})
		require.NoError(t, err)
		batches, err := readAll(t, ld, loader.Cursor{}, 5)
		require.Len(t, batches, 2)
		require.ErrorIs(t, err, bad)
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 17, failure.Sample)
	})
}

// That slots are asked for early says nothing of who is slow, and so is in no figure.
func TestWaitsForSlotsWhereSamplesBeginEarly(t *testing.T) {
	const ms = time.Millisecond
	for consume, most := range map[time.Duration]float64{0: 0.2, 40 * ms: 1} {
		synctest.Test(t, func(t *testing.T) {
			ds := coster{priced: priced{numbers: numbers{n: 800}, takes: func(i int) time.Duration {
				if i%16 == 15 {
					return 30 * ms
				}
				return 5 * ms
			}}}
			ld, err := loader.New(ds, 8, loader.Options{Workers: 4, Epochs: 1})
			require.NoError(t, err)
			mem := heap(t, ld, 4)
			run := ld.Start(t.Context(), loader.Cursor{}, mem)
			began := time.Now()
			var asked time.Duration
			for {
				f, err := run.Next(t.Context())
				if err != nil {
					require.ErrorIs(t, err, loader.ErrEpochEnd)
					break
				}
				asked += f.Times.Opened.Sub(f.Times.Asked)
				time.Sleep(consume)
				mem.Put(f.Slot)
			}
			share := run.Stats().WaitSlot.Seconds() / time.Since(began).Seconds()
			require.Equal(t, asked, run.Stats().WaitSlot)
			require.LessOrEqual(t, share, most)
			require.GreaterOrEqual(t, share, most-0.4)
			require.NoError(t, run.Close())
		})
	}
}

// The cost of a sample of a composition is that of the sample below it.
func TestCostsBelowACompositionCount(t *testing.T) {
	ds := coster{priced: priced{numbers: numbers{n: 40}, takes: func(int) time.Duration { return 0 }}}
	asked := map[int]bool{}
	ds.cost = func(i int) float64 {
		asked[i] = true
		return 1
	}
	part, err := compose.Subset(ds, []int{3, 9, 27, 30})
	require.NoError(t, err)
	ld, err := loader.New(part, 2, loader.Options{Epochs: 1})
	require.NoError(t, err)
	batches, err := readAll(t, ld, loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Equal(t, []int64{3, 9, 27, 30}, indices(batches))
	require.Equal(t, map[int]bool{3: true, 9: true, 27: true, 30: true}, asked)
}
