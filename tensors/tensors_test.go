package tensors_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// goTypes are what a tensor's Data is a slice of.
var goTypes = map[dtype.Type]any{
	dtype.Bool:     []bool{},
	dtype.Uint8:    []uint8{},
	dtype.Int8:     []int8{},
	dtype.Uint16:   []uint16{},
	dtype.Int16:    []int16{},
	dtype.Uint32:   []uint32{},
	dtype.Int32:    []int32{},
	dtype.Uint64:   []uint64{},
	dtype.Int64:    []int64{},
	dtype.Float16:  []uint16{},
	dtype.BFloat16: []uint16{},
	dtype.Float32:  []float32{},
	dtype.Float64:  []float64{},
}

// encode is a slice's memory.
func encode(t *testing.T, data any) []byte {
	t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, data)
	require.NoError(t, err)
	return b
}

func TestATensorIsTheBatchsMemory(t *testing.T) {
	var cache tensors.Cache
	for name, of := range map[string]func(prefetch.Field) (*tensor.Dense, error){"Of": tensors.Of, "Cache": cache.Of} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := open(t, every{}, 4, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
				for range 4 {
					first := 0
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						for _, f := range b.Fields() {
							dense, err := of(f)
							if f.Name == "empty" {
								require.ErrorIs(t, err, tensors.ErrNoElements)
								continue
							}
							require.NoError(t, err)
							require.Equal(t, tensor.Shape{b.Len(), 3}, dense.Shape())
							require.IsType(t, goTypes[f.DType], dense.Data())
							require.Equal(t, f.Bytes, encode(t, dense.Data()))
							require.Equal(t, byte(first)&1, f.Bytes[0])
							dense.Zero() // the tensor and the field are one memory
							require.Equal(t, make([]byte, len(f.Bytes)), f.Bytes)
						}
						first += b.Len()
					}
					require.Equal(t, 10, first)
				}
				require.NoError(t, pf.Close())
			})
		})
	}
}

// A clone is the caller's: no later batch shows in it, nor does it in them.
func TestClones(t *testing.T) {
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := shaped{n: 38, shape: []int{6}}
				pf := host(t, data)
				var all []*tensor.Dense
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					d, err := tensors.Clone(b.Field("x"))
					require.NoError(t, err)
					require.Equal(t, tensor.Shape{b.Len(), 6}, d.Shape())
					require.Equal(t, b.Field("x").Bytes, d.Data())
					if all = append(all, d); len(all) == 1 {
						d.Data().([]byte)[0]++
						require.NotEqual(t, b.Field("x").Bytes, d.Data())
						d.Data().([]byte)[0]--
					}
				}
				require.NoError(t, pf.Close())
				require.Len(t, all, 10)
				for i, d := range all {
					require.Equal(t, data.rows(4*i, d.Shape()[0]), d.Data())
				}
			})
		})
	}
	pf := open(t, every{}, 4, prefetch.Options{})
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		for _, f := range b.Fields() {
			mine, err := tensors.Clone(f)
			if f.Name == "empty" {
				require.ErrorIs(t, err, tensors.ErrNoElements)
				continue
			}
			require.NoError(t, err)
			theirs, err := tensors.Of(f)
			require.NoError(t, err)
			require.Equal(t, theirs.Data(), mine.Data())
		}
	}
	require.NoError(t, pf.Close())
}

// A batch in device memory is refused before a method of a tensor could touch it.
func TestDeviceMemoryIsRefused(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	ld, err := loader.New(shaped{n: 4, shape: []int{2}}, 2, loader.Options{})
	require.NoError(t, err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	require.NoError(t, err)
	var cache tensors.Cache
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		for _, make := range []func(prefetch.Field) (*tensor.Dense, error){tensors.Of, tensors.Clone, cache.Of} {
			d, err := make(b.Field("x"))
			require.Nil(t, d)
			var at *tensors.FieldError
			require.ErrorAs(t, err, &at)
			require.Equal(t, "x", at.Name)
			require.ErrorIs(t, err, tensors.ErrDeviceMemory)
			require.EqualError(t, err, `tensors: field "x" is in device memory, which a tensor's methods cannot read: take Field(name).View`)
		}
	}
	require.NoError(t, pf.Close())
	require.NoError(t, compute.Close())
	require.NoError(t, dev.Close())
}

func TestAFieldWithoutATypeIsRefused(t *testing.T) {
	for _, make := range []func(prefetch.Field) (*tensor.Dense, error){tensors.Of, tensors.Clone, new(tensors.Cache).Of} {
		_, err := make(prefetch.Field{Name: "x", DType: dtype.Invalid, Shape: []int{1}, Bytes: []byte{0}})
		require.EqualError(t, err, `tensors: field "x" has elements of type invalid, want bool, an integer or a float`)
		_, err = make(prefetch.Field{Name: "x", DType: dtype.Bool, Shape: []int{2, 0}})
		require.EqualError(t, err, `tensors: field "x" of shape [2 0] has no elements, which package tensor cannot express`)
	}
}

// What a host consumer keeps may be read after Close: it is only undefined.
func TestTensorsOutliveClose(t *testing.T) {
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := host(t, shaped{n: 40, shape: []int{1 << 10}})
				var dense []*tensor.Dense
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					d, err := tensors.Of(b.Field("x"))
					require.NoError(t, err)
					dense = append(dense, d)
				}
				require.NoError(t, pf.Close())
				for _, d := range dense {
					require.NotEmpty(t, d.String())
					require.NoError(t, d.Memset(byte(7)))
				}
			})
		})
	}
}

// In a build that checks, a tensor that was kept never shows another batch's numbers.
func TestAKeptTensorIsPoison(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs -tags invariants")
	}
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := host(t, shaped{n: 40, shape: []int{6}})
				poison := bytes.Repeat([]byte{0xff}, 24)
				var cache tensors.Cache
				var kept []*tensor.Dense
				for range 2 {
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						for _, d := range kept {
							require.Equal(t, poison, d.Data())
						}
						for _, of := range []func(prefetch.Field) (*tensor.Dense, error){tensors.Of, cache.Of} {
							d, err := of(b.Field("x"))
							require.NoError(t, err)
							kept = append(kept, d)
						}
					}
				}
				require.NoError(t, pf.Close())
			})
		})
	}
}
