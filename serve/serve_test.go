package serve_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/serve"
)

func TestEachHasItsOwnAnswer(t *testing.T) {
	for name, open := range queues() {
		t.Run(name, func(t *testing.T) {
			q := open(t, 4, nil, serve.Options{})
			var asking sync.WaitGroup
			for i := range 1000 {
				asking.Go(func() {
					got, err := q.Do(t.Context(), ask{number: int64(i)})
					if err != nil || got != int64(i*i) {
						t.Errorf("%d: %d, %v", i, got, err)
					}
				})
			}
			asking.Wait()
			s := q.Stats()
			require.EqualValues(t, 1000, s.Answered)
			require.EqualValues(t, 1000, s.Rows)
			require.Zero(t, s.Open)
			require.NoError(t, q.Shutdown(t.Context()))
		})
	}
}

// The first two share a batch; nobody waits longer than 50 ms, whatever the steps before do.
func TestABatchBeginsInTime(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct{ at, want []time.Duration }{
		"few": {[]time.Duration{0, 10 * ms, 200 * ms, 900 * ms}, []time.Duration{50 * ms, 50 * ms, 250 * ms, 950 * ms}},
		"more": {[]time.Duration{0, 10 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 200 * ms, 900 * ms},
			[]time.Duration{30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 30 * ms, 80 * ms, 80 * ms, 250 * ms, 950 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s := gpu(t, cpu.Options{Model: &cpu.Model{ComputeEngines: 4, CopyTime: func(cpu.Direction, int64) time.Duration { return 0 }}})
				o := serve.Options{MaxWait: 50 * ms, InFlight: 4}
				o.Prefetch.Streams.Compute = 4
				q, err := serve.New(s, 8, squares(nil), onDevice(always(time.Second)), o)
				require.NoError(t, err)
				began := time.Now()
				var asking sync.WaitGroup
				took := make([]time.Duration, len(c.at))
				for i, at := range c.at {
					time.Sleep(time.Until(began.Add(at)))
					asking.Go(func() {
						_, err := q.Do(t.Context(), ask{number: int64(i)})
						require.NoError(t, err)
						took[i] = time.Since(began)
					})
				}
				asking.Wait()
				var want []time.Duration
				for _, w := range c.want {
					want = append(want, w+time.Second)
				}
				require.ElementsMatch(t, want, took)
				require.NoError(t, q.Close())
			})
		})
	}
}
