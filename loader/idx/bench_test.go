package idx_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/idx"
	"github.com/leat-go/leat/loader/source"
)

// large writes a file of so many bytes of elements, and returns its path.
func large(t testing.TB, code byte, width, size int, zip bool) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "large"))
	require.NoError(t, err)
	var w io.Writer = f
	if zip {
		z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		defer func() { require.NoError(t, z.Close()) }()
		w = z
	} else {
		defer func() { require.NoError(t, f.Close()) }()
	}
	_, err = w.Write(file(code, []uint32{uint32(size / width)}, []byte{}))
	require.NoError(t, err)
	chunk := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{})
	for left := size; left > 0; left -= len(chunk) {
		chunk = chunk[:min(len(chunk), left)]
		_, _ = random.Read(chunk[:len(chunk)/4]) // so that gzip finds something to do
		_, err := w.Write(chunk)
		require.NoError(t, err)
	}
	return f.Name()
}

// B/op beside the bytes of MB/s says how often the elements were held.
func BenchmarkOpen(b *testing.B) {
	const size = 256 << 20
	for _, c := range []struct {
		code  byte
		width int
		zip   bool
	}{{0x08, 1, false}, {0x0d, 4, false}, {0x0e, 8, false}, {0x08, 1, true}} {
		b.Run(fmt.Sprintf("width=%d/gzip=%v", c.width, c.zip), func(b *testing.B) {
			path := large(b, c.code, c.width, size, c.zip)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := idx.Open(b.Context(), source.Path(path)); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				runtime.GC()
				b.StartTimer()
			}
		})
	}
}
