package prefetch_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A field that a Transform or a step forgets would hold an earlier batch's: the batch
// fails, behind those before it, and the field is named.
func TestAForgottenFieldOfTheDevicesIsNotDelivered(t *testing.T) {
	const bad = 5
	data := canary{n: 40, width: 6}
	forget := func(s *device.Stream, at prefetch.Position, out, in func(string) prefetch.Field) error {
		for _, name := range []string{"index", "bytes"} {
			if at.Batch == bad && name == "bytes" {
				continue
			}
			to, from := out(name), in(name)
			if to.View.Size() == 0 {
				continue
			}
			if err := s.CopyD2D(to.View, from.View); err != nil {
				return err
			}
		}
		return nil
	}
	fields := append(data.Fields(), loader.Field{Name: "nothing", DType: data.Fields()[0].DType, Shape: []int{0}})
	transform := &prefetch.Transform{Out: fields, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
		return forget(s, in.Position(), out.Field, in.Field)
	}}
	named := func(t *testing.T, err error) {
		var unwritten *loader.UnwrittenError
		require.ErrorAs(t, err, &unwritten)
		require.Equal(t, "bytes", unwritten.Field.Name)
	}
	for name, po := range map[string]prefetch.Options{
		"transform":         {Transform: transform, BatchesPerCopy: 1},
		"several in a copy": {Transform: transform, BatchesPerCopy: 3},
		"host":              {Transform: transform},
		"map":               {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, data, adversarial(0), 2, plain, prefetch.Options{})
				ld, err := loader.New(data, 4, loader.Options{})
				require.NoError(t, err)
				require.NoError(t, r.pf.Close())
				if name == "host" {
					r.pf, err = prefetch.NewHost(ld, po)
				} else {
					r.pf, err = prefetch.New(r.compute, ld, po)
				}
				require.NoError(t, err)
				n := 0
				var failed error
				if name == "map" {
					step := func(b prefetch.Batch, out prefetch.Fields) error {
						return forget(b.Stream(), b.Position(), out.Field, b.Field)
					}
					for _, failed = range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, step) {
						n++
					}
					var where *prefetch.StageError
					require.ErrorAs(t, failed, &where)
					require.Equal(t, bad, where.Position.Batch)
				} else {
					for _, failed = range r.pf.Batches(t.Context()) {
						n++
					}
					var where *prefetch.StageError
					require.ErrorAs(t, failed, &where)
					require.Equal(t, bad, where.Position.Batch)
				}
				named(t, failed)
				require.Equal(t, bad+1, n, "the batches before it, and the error")
				r.close()
			})
		})
	}
}
