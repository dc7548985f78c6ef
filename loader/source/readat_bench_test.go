package source_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
)

// Reads at random places of a file of 64 MiB that lies in the system's memory: with a call
// of the system each, and from a mapping.
func BenchmarkReadAt(b *testing.B) {
	const size = 64 << 20
	path := source.Path(write(b, random(size)))
	for _, bytes := range []int{784, 4 << 10, 16 << 10, 64 << 10, 150 << 10, 1 << 20} {
		for kind, s := range map[string]source.Source{"file": path, "mapped": source.Mapped(path)} {
			b.Run(fmt.Sprintf("bytes=%d/%s", bytes, kind), func(b *testing.B) {
				f, err := s.Open(b.Context())
				require.NoError(b, err)
				defer f.Close()
				r, p, ctx := rand.New(rand.NewPCG(1, 1)), make([]byte, bytes), b.Context()
				for off := int64(0); off+int64(bytes) <= size; off += int64(bytes) {
					_, _ = f.ReadAt(ctx, p, off) // so that its pages are mapped
				}
				b.SetBytes(int64(bytes))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := f.ReadAt(ctx, p, r.Int64N(size-int64(bytes))); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// What a Pool adds to a read of a file that is open, and what it takes to open one again.
func BenchmarkPool(b *testing.B) {
	path := source.Mapped(source.Path(write(b, random(1000))))
	for _, files := range []int{1, 3} {
		b.Run(fmt.Sprintf("limit=2/files=%d", files), func(b *testing.B) {
			pool := source.NewPool(2)
			var opened []source.File
			for range files {
				f, err := pool.Source(path).Open(b.Context())
				require.NoError(b, err)
				defer f.Close()
				opened = append(opened, f)
			}
			p, ctx, i := make([]byte, 100), b.Context(), 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				if _, err := opened[i%files].ReadAt(ctx, p, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
