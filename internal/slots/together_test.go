package slots_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/slots"
)

// A ring between the goroutines that prefetch has: one fills its slots, one has the batches
// in hand, one renews what has failed; and any may ask how it stands.
func TestARingBetweenGoroutines(t *testing.T) {
	for _, computes := range []int{1, 2} {
		t.Run(fmt.Sprint(computes), func(t *testing.T) {
			const laps = 200
			r := newRig(t, 3, computes)
			a, b, other, reader := r.stream("a"), r.stream("b"), r.stream("other"), r.stream("reader")
			two := func() *slots.Computes { return &slots.Computes{Streams: []*device.Stream{a, b}} }
			ctx, end := context.WithCancel(t.Context())
			r.ring.StartWatching(ctx)

			var observers sync.WaitGroup
			observe := func(f func()) {
				observers.Go(func() {
					for ctx.Err() == nil {
						f()
						runtime.Gosched()
					}
				})
			}
			one := r.ring.Next()
			r.ring.Back(one, false)
			asks := two()
			observe(func() { r.ring.Free() })
			observe(func() { r.ring.Held() })
			observe(func() { asks.Next(r.ring) })
			observe(func() { _ = one.Rest(ctx) })
			observe(func() {
				for _, s := range r.ring.TakeFailed() {
					if s.Rest(ctx) == nil {
						s.Renew()
					}
					r.ring.Back(s, false)
				}
			})

			full := make(chan *slots.Slot)
			go func() { // ends with the laps, or with ctx
				defer close(full)
				turn := two()
				for range laps {
					s := r.ring.Next()
					for s == nil {
						select {
						case <-r.ring.Wake:
							s = r.ring.Next()
						case <-ctx.Done():
							return
						}
					}
					compute := turn.Next(r.ring)
					_ = s.BeginWrite(r.copies)
					_ = s.EndWrite(r.copies)
					runtime.Gosched()
					s.Load(1)
					runtime.Gosched()
					_ = s.Give(compute)
					full <- s
				}
			}()

			uses, came := make(slots.Uses, 0, 1), 0
			for s := range full {
				came++
				s.Delivered()
				runtime.Gosched()
				if err := s.BeginRead(reader); err == nil {
					runtime.Gosched()
					require.NoError(t, s.EndRead(reader))
				}
				stream := other
				if came%10 == 0 {
					stream = r.stream("gone")
				}
				require.NoError(t, use(s, &uses, stream))
				if stream != other {
					require.NoError(t, stream.Close())
				}
				err := r.ring.Return(s, &uses, true)
				require.Equal(t, stream != other, err != nil, "%v", err)
			}
			require.Equal(t, laps, came)

			runtime.Gosched()
			for _, s := range r.ring.Retire(func(s *slots.Slot) { r.ring.Keep(s) }) {
				r.ring.Back(s, false)
			}
			end()
			observers.Wait()
			r.ring.StopWatching()
			require.Equal(t, 3, r.ring.Free())
			r.close(a, b, other, reader)
		})
	}
}
