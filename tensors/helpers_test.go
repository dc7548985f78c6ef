package tensors_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// shaped is a dataset with one field "x" of that shape, each element of which is
// different from its neighbours and from its like in other samples.
type shaped struct {
	n     int
	shape []int
}

func (s shaped) Len() int { return s.n }

func (s shaped) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: s.shape}}
}

func (s shaped) size() int {
	n := 1
	for _, d := range s.shape {
		n *= d
	}
	return n
}

func (s shaped) at(index, i int) byte { return byte(index*31 + i*3 + 1) }

// rows are the elements of n samples from the given one on.
func (s shaped) rows(from, n int) (all []byte) {
	for i := range n * s.size() {
		all = append(all, s.at(from+i/s.size(), i%s.size()))
	}
	return all
}

func (s shaped) Read(_ context.Context, index int, row *loader.Row) error {
	return loader.Write(row, "x", s.rows(index, 1)...)
}

// every is a dataset with a field of each element type, and one without elements.
type every struct{}

func (every) types() (all []dtype.Type) {
	for t := dtype.Bool; t.Valid(); t++ {
		all = append(all, t)
	}
	return all
}

func (every) Len() int { return 10 }

func (e every) Fields() []loader.Field {
	var fields []loader.Field
	for _, t := range e.types() {
		fields = append(fields, loader.Field{Name: t.String(), DType: t, Shape: []int{3}})
	}
	return append(fields, loader.Field{Name: "empty", DType: dtype.Float32, Shape: []int{0, 3}})
}

func (e every) Read(_ context.Context, index int, row *loader.Row) error {
	for _, t := range e.types() {
		b := row.Bytes(t.String())
		clear(b)
		for j := 0; j < len(b); j += len(b) / 3 {
			b[j] = byte(index) & 1 // a legal bool too
		}
	}
	return nil
}

// hosts are the kinds of host pipeline: the batch is the pinned slot, or what a
// transform made of it.
var hosts = map[string]func(t *testing.T, data shaped) *prefetch.Prefetcher{
	"host": func(t *testing.T, data shaped) *prefetch.Prefetcher {
		return open(t, data, 4, prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
	},
	"host with transform": func(t *testing.T, data shaped) *prefetch.Prefetcher {
		return open(t, data, 4, prefetch.Options{Transform: &prefetch.Transform{
			Out: data.Fields(),
			Apply: func(s *device.Stream, out, in prefetch.Fields) error {
				return s.CopyD2D(out.Field("x").View, in.Field("x").View)
			},
		}})
	},
}

// open makes a host pipeline.
func open(t testing.TB, data loader.Dataset, batchSize int, o prefetch.Options) *prefetch.Prefetcher {
	t.Helper()
	ld, err := loader.New(data, batchSize, loader.Options{Workers: 2})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, o)
	require.NoError(t, err)
	return pf
}
