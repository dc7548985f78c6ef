package prefetch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// reference is when the last batch is computed: producers take reads[i] for batch i,
// one after the other, then come the copy and compute, each one at a time.
func reference(reads []time.Duration, in, compute time.Duration, depth, hostSlots int) time.Duration {
	n := len(reads)
	filled, released, copied, computed := make([]time.Duration, n), make([]time.Duration, n), make([]time.Duration, n), make([]time.Duration, n)
	at := func(times []time.Duration, i int) time.Duration { // when slot i's last user was done
		if i < 0 {
			return 0
		}
		return times[i]
	}
	for i := range n {
		filled[i] = max(at(filled, i-1), at(copied, i-hostSlots)) + reads[i]
		// The loop's body only submits: it releases a batch as soon as it has it.
		released[i] = max(filled[i], at(released, i-1), at(released, i-depth))
		copied[i] = max(released[i], at(copied, i-1), at(computed, i-depth)) + in
		computed[i] = max(copied[i], at(computed, i-1)) + compute
	}
	return computed[n-1]
}

// Producers whose pace varies, and rings of all sizes: the schedule is the
// reference's, to the nanosecond.
func TestScheduleOfJitteringProducersIsTheReference(t *testing.T) {
	for _, depth := range []int{1, 2, 3, 8} {
		for _, hostSlots := range []int{1, 2, 8} {
			for seed := range uint64(6) {
				t.Run(fmt.Sprintf("depth=%d/hostslots=%d/seed=%d", depth, hostSlots, seed), func(t *testing.T) {
					dice := rand.New(rand.NewPCG(seed, 1))
					reads := make([]time.Duration, 40)
					for i := range reads {
						reads[i] = time.Duration(dice.IntN(10_000)) * time.Microsecond
					}
					in, compute := time.Duration(dice.IntN(8_000))*time.Microsecond, time.Duration(dice.IntN(8_000))*time.Microsecond
					synctest.Test(t, func(t *testing.T) {
						data := canary{n: len(reads), width: 8, read: func(_ context.Context, i int) error { time.Sleep(reads[i]); return nil }}
						r := newRig(t, data, cpu.Options{Model: modelled(in)}, 1, loader.Options{Workers: 1},
							prefetch.Options{Depth: depth, Memory: prefetch.Memory{HostSlots: hostSlots}})
						start := time.Now()
						require.NoError(t, r.epochs(1, compute))
						require.Equal(t, reference(reads, in, compute, depth, hostSlots), time.Since(start))
						r.close()
					})
				})
			}
		}
	}
}

// With one copy engine for both directions upload and download take turns: the
// engine is what the pipeline waits for when the two take longer than compute.
func TestScheduleOfOneCopyEngineForBothDirections(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		in, compute, out time.Duration
		want             time.Duration
	}{
		{10 * ms, 30 * ms, 10 * ms, (10 + 20*30 + 10) * ms}, // hidden behind compute
		{20 * ms, 10 * ms, 20 * ms, 20 * (20 + 20) * ms},    // the engine never rests
		{10 * ms, 5 * ms, 30 * ms, 20 * (10 + 30) * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			model := stages(c.in, c.out, 1)
			model.CopyEngines, model.SharedCopyEngines = 1, true
			r := newRig(t, canary{n: 20, width: 8}, cpu.Options{Model: model}, 1, loader.Options{Workers: 2}, prefetch.Options{})
			start := time.Now()
			for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(c.compute))) {
				require.NoError(t, err)
				require.NoError(t, r.verify(got(res)))
			}
			require.Equal(t, c.want, time.Since(start))
			r.close()
		})
	}
}
