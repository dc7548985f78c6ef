//go:build invariants

package prefetch_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// What a Transform or a step leaves out, of its output or of scratch, is poison and
// never an earlier batch's bytes.
func TestAPartThatIsLeftOutIsPoison(t *testing.T) {
	data := canary{n: 40, width: 8}
	const wrote = 3 // the bytes that each batch's work writes
	part := func(s *device.Stream, at prefetch.Position, out prefetch.Field) error {
		return s.Memset(out.View.Slice(0, wrote), byte(1+at.Batch))
	}
	scratch := []loader.Field{{Name: "between", DType: dtype.Uint8, Shape: []int{data.width}}}
	for name, po := range map[string]prefetch.Options{
		"transform":         {BatchesPerCopy: 1},
		"several in a copy": {BatchesPerCopy: 3},
		"scratch":           {},
		"host":              {},
		"map":               {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, data, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
				ld, err := loader.New(data, 4, loader.Options{Epochs: 2})
				require.NoError(t, err)
				require.NoError(t, r.pf.Close())
				if name != "map" {
					po.Transform = &prefetch.Transform{Out: data.Fields()[1:], Scratch: scratch, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
						to := out.Field("bytes")
						if name != "scratch" {
							return part(s, in.Position(), to)
						}
						between := out.Scratch("between")
						if err := part(s, in.Position(), between); err != nil {
							return err
						}
						if err := s.CopyD2D(to.View, between.View); err != nil {
							return err
						}
						return s.Memset(between.View, 7) // for the next batch to find, if it could
					}}
				}
				r.pf, err = prefetch.New(r.compute, ld, po)
				if name == "host" {
					require.NoError(t, r.pf.Close())
					r.pf, err = prefetch.NewHost(ld, po)
				}
				require.NoError(t, err)
				look := func(batch int, got []byte) {
					want := bytes.Repeat([]byte{0xff}, 4*data.width)
					copy(want, bytes.Repeat([]byte{byte(1 + batch)}, wrote))
					require.Equal(t, want, got, "batch %d", batch)
				}
				var all [][]byte
				for range 2 {
					if name == "map" {
						step := func(b prefetch.Batch, out prefetch.Fields) error {
							return part(b.Stream(), b.Position(), out.Field("bytes"))
						}
						for result, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()[1:]}, step) {
							require.NoError(t, err)
							all = append(all, bytes.Clone(result.Field("bytes").Bytes))
						}
						continue
					}
					for b, err := range r.pf.Batches(t.Context()) {
						require.NoError(t, err)
						f := b.Field("bytes")
						if name == "host" {
							all = append(all, bytes.Clone(f.Bytes))
							continue
						}
						to := r.arena.Bytes()[r.used:][:f.View.Size()]
						r.used += f.View.Size()
						require.NoError(t, b.Stream().CopyD2H(to, f.View))
						all = append(all, to)
					}
				}
				require.NoError(t, r.dev.Synchronize(t.Context()))
				require.Len(t, all, 20)
				for i, got := range all {
					look(i%10, got)
				}
				r.close()
			})
		})
	}
}
