package serve_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

// On a GPU, too, each request has its own answer, those that leave harm nobody, a step that
// fails fails its batch, and in steady state nothing is allocated on the device.
func TestGPUServes(t *testing.T) {
	dev, err := cuda.Open(cuda.Options{})
	if err != nil {
		if os.Getenv("LEAT_GPU") == "required" {
			t.Fatal("LEAT_GPU=required, and ", err)
		}
		t.Skip("needs a GPU: ", err)
	}
	defer dev.Close()
	stream, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	defer stream.Close()
	for _, streams := range []int{1, 3} {
		var steps atomic.Int64
		o := serve.Options{MaxWait: 200 * time.Microsecond, Block: true, InFlight: 4}
		o.Prefetch.Streams.Compute = streams
		q, err := serve.New(stream, 32, squares(nil), func(b prefetch.Batch, out prefetch.Fields) error {
			if steps.Add(1)%50 == 0 {
				return errStep
			}
			if err := kernels.Spin(b.Stream(), 100*time.Microsecond); err != nil {
				return err
			}
			return onDevice(always(0))(b, out)
		}, o)
		require.NoError(t, err)
		run := func() {
			var asking sync.WaitGroup
			for g := range 100 {
				asking.Go(func() {
					for i := range 200 {
						number := int64(g*1000 + i)
						ctx, cancel := context.WithCancel(t.Context())
						if i%10 == 0 {
							time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
						}
						got, err := q.Do(ctx, ask{number: number})
						cancel()
						switch {
						case err == nil && got != number*number:
							t.Errorf("request %d was answered with %d", number, got)
						case err != nil && !errors.Is(err, errStep) && !errors.Is(err, context.Canceled):
							t.Error(err)
						}
					}
				})
			}
			asking.Wait()
		}
		run()
		used := dev.Usage()
		run()
		require.Equal(t, used, dev.Usage())
		s := q.Stats()
		t.Logf("%d compute streams: %d requests in batches %.0f%% full, p50 %v, p99 %v", streams,
			s.Answered, 100*s.Fill(), s.Latency.Quantile(0.5), s.Latency.Quantile(0.99))
		require.NoError(t, q.Shutdown(t.Context()))
	}
}
