package tar_test

import (
	gotar "archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/loader/tar"
)

// MB/s beside those of a plain read of the same file, in one run, in the system's memory: a
// sample is a picture of 50 KB, which is copied to a row, and a class.
func BenchmarkRead(b *testing.B) {
	const samples, bytes = 2000, 50_000
	path := filepath.Join(b.TempDir(), "a.tar")
	f, err := os.Create(path)
	require.NoError(b, err)
	w := gotar.NewWriter(f)
	for i := range samples {
		for suffix, data := range map[string][]byte{"jpg": make([]byte, bytes), "cls": []byte("7")} {
			require.NoError(b, w.WriteHeader(&gotar.Header{Name: fmt.Sprintf("%06d.%s", i, suffix), Size: int64(len(data)), Mode: 0o600}))
			_, err := w.Write(data)
			require.NoError(b, err)
		}
	}
	require.NoError(b, w.Close())
	require.NoError(b, f.Close())
	files := []source.Source{source.Path(path)}
	fields := []loader.Field{{Name: "jpg", DType: dtype.Uint8, Shape: []int{bytes}}, {Name: "cls", DType: dtype.Int64}}
	encode := func(_ context.Context, s *tar.Sample, row *loader.Row) error {
		data, err := s.Get("jpg")
		if err != nil {
			return err
		}
		class, err := s.Int("cls")
		if err != nil {
			return err
		}
		copy(row.Bytes("jpg"), data)
		return loader.Write(row, "cls", class)
	}
	scratch, err := loader.NewScratch(fields)
	require.NoError(b, err)
	row := new(loader.Row)

	b.Run("plain", func(b *testing.B) {
		b.SetBytes(samples * bytes)
		buffer, to := make([]byte, bytes), make([]byte, bytes)
		for b.Loop() {
			f, err := os.Open(path)
			require.NoError(b, err)
			for {
				if _, err := io.ReadFull(f, buffer); err != nil {
					break
				}
				copy(to, buffer)
			}
			require.NoError(b, f.Close())
		}
	})
	b.Run("numbered", func(b *testing.B) {
		s, err := tar.Open(b.Context(), files, tar.Options{})
		require.NoError(b, err)
		ds := s.Dataset(fields, encode)
		b.SetBytes(samples * bytes)
		b.ReportAllocs()
		for b.Loop() {
			for i := range samples {
				if err := ds.Read(b.Context(), i, scratch.Begin(row)); err != nil {
					b.Fatal(err)
				}
			}
		}
		require.NoError(b, s.Close())
	})
	b.Run("stream", func(b *testing.B) {
		s := tar.NewStream(files, tar.Options{})
		b.SetBytes(samples * bytes)
		for b.Loop() {
			r, err := s.Open(b.Context(), loader.Pass{}, 0, nil)
			require.NoError(b, err)
			var item stream.Item[*tar.Sample]
			for {
				ok, err := r.Next(b.Context(), &item)
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					break
				}
				if err := encode(b.Context(), item.Value, scratch.Begin(row)); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, r.Close())
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportMetric(0, "ns/op")
		for b.Loop() {
			s, err := tar.Open(b.Context(), files, tar.Options{})
			require.NoError(b, err)
			require.NoError(b, s.Close())
		}
		b.ReportMetric(float64(b.N)*samples/b.Elapsed().Seconds(), "samples/s")
	})
}
