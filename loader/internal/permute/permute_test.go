package permute

import "testing"

func BenchmarkFill(b *testing.B) {
	for _, n := range []uint64{100, 256, 60000, 1e9} {
		b.Run("", func(b *testing.B) {
			p := New(1, n)
			var dst [64]int
			for b.Loop() {
				p.Fill(dst[:], n/3)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*64), "ns/position")
		})
	}
}
