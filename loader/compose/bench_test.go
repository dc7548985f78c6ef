package compose_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// nothing is a dataset whose samples cost nothing to read.
type nothing struct{ n int }

func (d nothing) Len() int { return d.n }

func (d nothing) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{0}}}
}

func (d nothing) Read(context.Context, int, *loader.Row) error { return nil }

// other has a field of another name.
type other struct{ nothing }

func (other) Fields() []loader.Field {
	return []loader.Field{{Name: "y", DType: dtype.Uint8, Shape: []int{0}}}
}

// combinations are one of each kind, over samples that cost nothing.
func combinations() map[string]func() (loader.Dataset, error) {
	const n = 100_000
	ds := nothing{n}
	indices := make([]int, n)
	for i := range indices {
		indices[i] = n - 1 - i
	}
	return map[string]func() (loader.Dataset, error){
		"Subset":  func() (loader.Dataset, error) { return compose.Subset(ds, indices) },
		"Skip":    func() (loader.Dataset, error) { return compose.Skip(ds, 10) },
		"Repeat":  func() (loader.Dataset, error) { return compose.Repeat(ds, 3) },
		"Concat":  func() (loader.Dataset, error) { return compose.Concat(ds, ds, ds) },
		"Shuffle": func() (loader.Dataset, error) { return compose.Shuffle(ds, 1) },
		"Select":  func() (loader.Dataset, error) { return compose.Select(ds, n, func(_, i int) int { return n - 1 - i }) },
		"Mix": func() (loader.Dataset, error) {
			return compose.Mix(1, compose.UntilAllEnded, compose.Source{Dataset: ds, Weight: 3}, compose.Source{Dataset: nothing{n / 3}, Weight: 1})
		},
		"Mix/InOrder": func() (loader.Dataset, error) {
			return compose.Mix(1, compose.UntilAllEnded, compose.Source{Dataset: ds, Weight: 3, InOrder: true}, compose.Source{Dataset: nothing{n / 3}, Weight: 1, InOrder: true})
		},
		"Weighted": func() (loader.Dataset, error) { return compose.Weighted(ds, slices.Repeat([]float64{1, 2}, n/2), n, 1) },
		"Balanced": func() (loader.Dataset, error) { return compose.Balanced(ds, slices.Repeat([]int{1, 2, 3, 4}, n/4), 1) },
		"ByLength": func() (loader.Dataset, error) { return compose.ByLength(ds, indices, 64, 1) },
		"Zip":      func() (loader.Dataset, error) { return compose.Zip(ds, other{ds}) },
		"Map": func() (loader.Dataset, error) {
			return compose.Map(ds, ds.Fields(), func(context.Context, *loader.Row, *loader.Row) error { return nil })
		},
		"CacheMemory": func() (loader.Dataset, error) { return compose.CacheMemory(nothing{n}, 1<<30) },
		"Retry":       func() (loader.Dataset, error) { return compose.Retry(ds, compose.RetryOptions{}) },
		"Split": func() (loader.Dataset, error) {
			parts, err := compose.Split(ds, 1, 0.9, 0.1)
			return parts[0], err
		},
		"SplitN": func() (loader.Dataset, error) {
			parts, err := compose.SplitN(ds, 1, n-10, 10)
			return parts[0], err
		},
	}
}

// BenchmarkRead is what a sample costs in a combination.
func BenchmarkRead(b *testing.B) {
	for name, make := range combinations() {
		b.Run(name, func(b *testing.B) {
			ds, err := make()
			require.NoError(b, err)
			s, err := loader.NewScratch(ds.Fields())
			require.NoError(b, err)
			row := s.Begin(new(loader.Row))
			n, ctx, i := ds.Len(), context.Background(), 0
			b.ReportAllocs()
			for b.Loop() {
				if err := ds.Read(ctx, i, row); err != nil {
					b.Fatal(err)
				}
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkBytes is what a sample of some bytes costs where it is copied.
func BenchmarkBytes(b *testing.B) {
	const n = 1000
	for _, size := range []int{784, 150528} {
		fields := []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: []int{size}}}
		image := make([]byte, size)
		ds := loader.FromFunc(n, fields, func(_ context.Context, _ int, row *loader.Row) error {
			return loader.Write(row, "image", image...)
		})
		file, err := compose.CacheFile(ds, filepath.Join(b.TempDir(), "cache"), "1")
		require.NoError(b, err)
		require.NoError(b, file.Build(b.Context()))
		for name, ds := range map[string]loader.Dataset{
			"plain": ds,
			"Map": must(compose.Map(ds, fields, func(_ context.Context, in, out *loader.Row) error {
				out.CopyFrom(in)
				return nil
			})),
			"Retry":       must(compose.Retry(ds, compose.RetryOptions{})),
			"CacheMemory": cached(ds),
			"CacheFile":   file,
		} {
			b.Run(fmt.Sprintf("%s/rowBytes=%d", name, size), func(b *testing.B) {
				s, err := loader.NewScratch(fields)
				require.NoError(b, err)
				row, i, ctx := s.Begin(new(loader.Row)), 0, context.Background()
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := ds.Read(ctx, i, row); err != nil {
						b.Fatal(err)
					}
					i = (i + 1) % n
				}
			})
		}
		require.NoError(b, file.Close())
	}
}

func cached(ds loader.Dataset) loader.Dataset {
	c, err := compose.CacheMemory(ds, 1<<30)
	return must(c, err)
}
