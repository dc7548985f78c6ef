package serve_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/serve"
)

// BenchmarkDo is what a request costs beside its computation: alone, and with others.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		for _, maxBatch := range []int{1, 32} {
			for name, open := range queues() {
				b.Run(fmt.Sprintf("on=%s/callers=%d/batch=%d", name, callers, maxBatch), func(b *testing.B) {
					q := open(b, maxBatch, nil, serve.Options{})
					b.ReportAllocs()
					b.SetParallelism(max(callers/runtime.GOMAXPROCS(0), 1))
					if callers == 1 {
						for i := int64(0); b.Loop(); i++ {
							if _, err := q.Do(b.Context(), ask{number: i}); err != nil {
								b.Fatal(err)
							}
						}
					} else {
						b.RunParallel(func(pb *testing.PB) {
							for i := int64(0); pb.Next(); i++ {
								if _, err := q.Do(b.Context(), ask{number: i}); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					b.StopTimer()
					b.ReportMetric(q.Stats().Fill(), "fill")
					require.NoError(b, q.Close())
				})
			}
		}
	}
}
