package prefetch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Fields that a Transform passes on are copied by their numbers, to others if it orders
// them anew. What can't be copied is an error that names both fields.
func TestATransformCopiesFieldsByNumber(t *testing.T) {
	data := canary{n: 10, width: 4}
	in := data.Fields() // index int64, bytes uint8[4]
	swapped := []loader.Field{in[1], in[0]}
	run := func(out []loader.Field, apply func(s *device.Stream, out, in prefetch.Fields) error) (rows int, err error) {
		ld, err := loader.New(data, 4, loader.Options{Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: &prefetch.Transform{Out: out, Apply: apply}})
		require.NoError(t, err)
		defer func() { require.NoError(t, pf.Close()) }()
		want := make([]byte, data.width)
		for b, err := range pf.Batches(t.Context()) {
			if err != nil {
				return rows, err
			}
			for r := range b.Len() {
				fill(want, rows)
				require.Equal(t, want, b.Field("bytes").Bytes[4*r:][:4])
				require.EqualValues(t, rows, b.Field("index").Bytes[8*r])
				rows++
			}
		}
		return rows, nil
	}
	rows, err := run(swapped, func(s *device.Stream, out, in prefetch.Fields) error {
		if err := out.Copy(s, 0, in, 1, 1); err != nil {
			return err
		}
		return out.Copy(s, 1, in, 0, 1)
	})
	require.NoError(t, err)
	require.Equal(t, 10, rows)
	rows, err = run(in, func(s *device.Stream, out, in prefetch.Fields) error { return out.Copy(s, 0, in, 0, 2) })
	require.NoError(t, err)
	require.Equal(t, 10, rows)

	_, err = run(swapped, func(s *device.Stream, out, in prefetch.Fields) error { return out.Copy(s, 0, in, 0, 1) })
	require.ErrorContains(t, err, "index int64 to bytes uint8[4], want fields of one size")
	unwritten := new(loader.UnwrittenError)
	_, err = run(in, func(s *device.Stream, out, in prefetch.Fields) error { return out.Copy(s, 0, in, 0, 1) })
	require.ErrorAs(t, err, &unwritten)
	require.Equal(t, loader.Field{Name: "bytes", DType: dtype.Uint8, Shape: []int{4}}, unwritten.Field)
	for _, n := range [][2]int{{0, 3}, {2, 1}, {-1, 1}, {0, -1}} {
		panicked := new(loader.PanicError)
		_, err = run(in, func(s *device.Stream, out, in prefetch.Fields) error { return out.Copy(s, n[0], in, n[0], n[1]) })
		require.ErrorAs(t, err, &panicked)
	}
}
