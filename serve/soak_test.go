package serve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

// Requests of every kind, from many goroutines: each has its own outcome, and goroutines and
// bytes stay what they were after the first tenth. LEAT_SERVE_SOAK is their number.
func TestSoak(t *testing.T) {
	requests := int64(30_000)
	if s := os.Getenv("LEAT_SERVE_SOAK"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		require.NoError(t, err)
		requests = n
	}
	kinds := []wrong{inSize + panics, inEncode + fails, inEncode + exits, inDecode + fails, inDecode + exits, inDecode + panics}
	kind := func(number int64) wrong {
		if number%50 == 7 {
			return kinds[number/50%int64(len(kinds))]
		}
		return ""
	}
	dev, stream := gpu(t, cpu.Options{})
	var steps atomic.Int64
	q, err := serve.New(stream, 16, squares(kind), func(b prefetch.Batch, out prefetch.Fields) error {
		if steps.Add(1)%100 == 0 {
			return errStep
		}
		return onDevice(always(0))(b, out)
	}, serve.Options{Limit: 300, TenantLimit: 100, Block: true, MaxWait: 100 * time.Microsecond, MaxSize: 1})
	require.NoError(t, err)

	var next, came, answers atomic.Int64
	one := func(rng *rand.Rand) {
		i := next.Add(1)
		a := ask{number: i, wrong: kind(i)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if rng.IntN(20) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel)
		}
		came.Add(1)
		got, err := q.DoAs(ctx, serve.Caller{Tenant: fmt.Sprint(i % 7), Priority: int8(i % 3)}, a)
		switch {
		case err == nil:
			answers.Add(1)
			if got != i*i || a.wrong != "" {
				t.Errorf("request %d (%q) was answered with %d", i, a.wrong, got)
			}
		case errors.Is(err, errStep), errors.Is(err, context.Canceled):
		case a.wrong != "":
			requireOwn(t, a, err)
		default:
			t.Errorf("request %d: %v", i, err)
		}
	}
	run := func(upTo int64) {
		var asking sync.WaitGroup
		for g := range 200 {
			asking.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(upTo), uint64(g)))
				for next.Load() < upTo {
					one(rng)
				}
			})
		}
		asking.Wait()
	}
	weigh := func() (goroutines int, bytes uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	run(requests / 10)
	used := dev.Usage()
	goroutines, bytes := weigh()
	run(requests)
	require.Equal(t, used, dev.Usage())
	nowGoroutines, nowBytes := weigh()
	require.LessOrEqual(t, nowGoroutines, goroutines+8, "the crew keeps a few")
	require.Less(t, nowBytes, bytes+1<<20)

	require.NoError(t, q.Shutdown(t.Context()))
	s := q.Stats()
	require.LessOrEqual(t, s.Came, came.Load(), "some give up before they ask")
	require.Equal(t, answers.Load(), s.Answered)
	require.Equal(t, s.Came, s.Answered+s.Failed+s.GaveUp)
	require.Zero(t, s.Open+s.Outside+s.InFlight+s.Tenants)
	t.Logf("%d requests, %d answered, batches %.0f%% full, p99 %v", s.Came, s.Answered, 100*s.Fill(), s.Latency.Quantile(0.99))
}
