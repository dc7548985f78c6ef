package tensors_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// A Cache makes one header for each slot and field, and another of none of them later:
// neither for short batches nor for the full ones behind them.
func TestACacheAllocatesNothingOnceItHasSeenEverySlot(t *testing.T) {
	if invariants.Enabled {
		t.Skip("in this build every host batch has memory of its own")
	}
	const slots = 3
	pf := open(t, shaped{n: 22, shape: []int{5}}, 4, prefetch.Options{Memory: prefetch.Memory{HostSlots: slots}})
	var cache tensors.Cache
	headers := map[*tensor.Dense]bool{}
	for range 12 { // epochs of 5 full batches and one of 2
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			f := b.Field("x")
			allocations := testing.AllocsPerRun(100, func() {
				d, err := cache.Of(f)
				if err != nil || d.Shape()[0] != b.Len() || len(d.Raw) != 5*b.Len() {
					t.Fatal(d, err)
				}
			})
			require.Zero(t, allocations)
			d, err := cache.Of(f)
			require.NoError(t, err)
			headers[d] = true
			require.Equal(t, f.Bytes, d.Data())
		}
	}
	require.LessOrEqual(t, len(headers), slots)
	require.NoError(t, pf.Close())
}

// Batches that are held at once have tensors of their own.
func TestACacheServesSeveralBatchesInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := shaped{n: 24, shape: []int{3}}
		pf := open(t, data, 4, prefetch.Options{Memory: prefetch.Memory{HostSlots: 4}})
		rd, err := pf.Open(t.Context())
		require.NoError(t, err)
		var cache tensors.Cache
		for first := 0; first < 24; first += 12 {
			var held []prefetch.Batch
			var dense []*tensor.Dense
			for range 3 {
				b, err := rd.Next(t.Context())
				require.NoError(t, err)
				d, err := cache.Of(b.Field("x"))
				require.NoError(t, err)
				held, dense = append(held, b), append(dense, d)
			}
			for i, b := range held {
				require.Equal(t, data.rows(first+4*i, 4), dense[i].Data())
				b.Release()
			}
		}
		require.NoError(t, rd.Close())
		require.NoError(t, pf.Close())
	})
}

func TestTensorsFromSeveralGoroutines(t *testing.T) {
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			pf := host(t, shaped{n: 50, shape: []int{6}})
			var cache tensors.Cache
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						d, err := cache.Of(b.Field("x"))
						if err != nil || d.Shape()[0] != b.Len() || !bytes.Equal(d.Data().([]byte), b.Field("x").Bytes) {
							t.Error(err)
						}
						c, err := tensors.Clone(b.Field("x"))
						if err != nil || !bytes.Equal(c.Data().([]byte), d.Data().([]byte)) {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			require.NoError(t, pf.Close())
		})
	}
}

// changes are what a user may do to a tensor of a batch of 4 samples.
var changes = map[string]struct {
	shape []int // of a sample
	do    func(t *testing.T, d *tensor.Dense)
}{
	"transposed":           {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T()) }},
	"transposed in memory": {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T()); require.NoError(t, d.Transpose()) }},
	"transposed back":      {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T()); d.UT() }},
	"axes permuted":        {[]int{4, 4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T(2, 0, 1)) }},
	"a column transposed":  {[]int{1}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T()) }},
	"reshaped":             {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.Reshape(2, 8)) }},
	"reshaped to columns":  {[]int{6}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.Reshape(6, 4)); require.NoError(t, d.T()) }},
	"a column flattened":   {[]int{1}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.Reshape(4)) }},
	"a vector stood up":    {nil, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.Reshape(4, 1)) }},
	"reshaped in place":    {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Shape()[0], d.Shape()[1] = 2, 8 }},
	"shortened in place":   {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Shape()[0] = 2 }},
	"strides changed":      {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Strides()[0], d.Strides()[1] = 1, 4 }},
	"masked":               {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.MaskedEqual(byte(7))) }},
	"masked for a part":    {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.SetMask([]bool{true, false}) }},
	"sliced": {[]int{4}, func(t *testing.T, d *tensor.Dense) {
		v, err := d.Slice(tensor.S(1, 3), tensor.S(0, 2))
		require.NoError(t, err)
		*d = *v.(*tensor.Dense)
	}},
	"the first rows sliced": {[]int{4}, func(t *testing.T, d *tensor.Dense) {
		v, err := d.Slice(tensor.S(0, 2))
		require.NoError(t, err)
		*d = *v.(*tensor.Dense)
	}},
	"column-major": {[]int{4}, func(t *testing.T, d *tensor.Dense) {
		*d = *tensor.New(tensor.WithShape(4, 4), tensor.AsFortran(d.Data()))
	}},
	"a column-major vector": {nil, func(t *testing.T, d *tensor.Dense) {
		*d = *tensor.New(tensor.WithShape(4), tensor.AsFortran(d.Data()))
	}},
	"signed": {[]int{4}, func(t *testing.T, d *tensor.Dense) {
		signed := tensor.New(tensor.WithShape(4, 4), tensor.WithBacking(make([]int8, 16)))
		signed.Raw = d.Raw
		*d = *signed
	}},
	"without strides": {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Info().Init(d.Shape(), nil) }},
	"other memory":    {[]int{4}, func(t *testing.T, d *tensor.Dense) { *d = *d.Clone().(*tensor.Dense) }},
	"less memory":     {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Raw = d.Raw[:8] }},
	"no memory":       {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Raw = nil }},
	"zeroed":          {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Zero() }},
	"returned":        {[]int{4}, func(t *testing.T, d *tensor.Dense) { *d = tensor.Dense{} }},
}

// Whatever a user did to the tensor of an earlier batch, the next one comes as its
// field says, element by element. The last batch of the epochs is a short one.
func TestATensorIsRestored(t *testing.T) {
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := shaped{n: 38, shape: c.shape}
				pf := open(t, data, 4, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
				var cache tensors.Cache
				batches := 0
				for range 2 {
					first := 0
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						d, err := cache.Of(b.Field("x"))
						require.NoError(t, err)
						require.Equal(t, append(tensor.Shape{b.Len()}, c.shape...), d.Shape())
						require.Empty(t, d.Mask())
						require.True(t, d.C())
						require.False(t, d.RequiresIterator() || d.IsView() || d.IsMaterializable())
						var got []byte
						for it, at := d.Iterator(), 0; ; {
							if at, err = it.Next(); err != nil {
								break
							}
							got = append(got, d.Data().([]byte)[at])
						}
						require.Equal(t, data.rows(first, b.Len()), got, "through its iterator")
						require.Equal(t, b.Field("x").Bytes, d.Data(), "as its memory")
						copied := tensor.New(tensor.WithShape(d.Shape()...), tensor.Of(tensor.Uint8))
						require.NoError(t, d.CopyTo(copied))
						require.Equal(t, data.rows(first, b.Len()), copied.Data(), "through package tensor")
						first += b.Len()
						if batches++; b.Len() == 4 {
							c.do(t, d)
						}
					}
				}
				require.Equal(t, 20, batches)
				require.NoError(t, pf.Close())
			})
		})
	}
}

// The tensor that a user has changed stays as it is within its batch.
func TestAChangedTensorIsLeftAlone(t *testing.T) {
	data := shaped{n: 4, shape: []int{2, 3}}
	pf := open(t, data, 4, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
	var cache tensors.Cache
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		mine, err := cache.Of(b.Field("x"))
		require.NoError(t, err)
		require.NoError(t, mine.T(2, 0, 1))
		theirs, err := cache.Of(b.Field("x"))
		require.NoError(t, err)
		require.Equal(t, tensor.Shape{3, 4, 2}, mine.Shape())
		require.Equal(t, tensor.Shape{4, 2, 3}, theirs.Shape())
	}
	require.NoError(t, pf.Close())
}

// lines are samples of other lengths: sample i has i%(maximum+1) rows of width elements.
type lines struct{ n, maximum, width int }

func (l lines) Len() int { return l.n }

func (l lines) Fields() []loader.Field {
	return []loader.Field{
		{Name: "x", DType: dtype.Uint8, Shape: []int{l.maximum, l.width}, Ragged: &loader.Ragged{Mask: "mask"}},
		{Name: "packed", DType: dtype.Uint8, Shape: []int{l.maximum}, Ragged: &loader.Ragged{Offsets: "offsets"}},
	}
}

func (l lines) Read(_ context.Context, index int, row *loader.Row) error {
	n := index % (l.maximum + 1)
	if err := loader.Write(row, "x", bytes.Repeat([]byte{byte(index + 1)}, n*l.width)...); err != nil {
		return err
	}
	return loader.Write(row, "packed", bytes.Repeat([]byte{byte(index + 1)}, n)...)
}

// A ragged field's tensor has each batch's own length, as one that is made for it has, and
// costs no allocation either.
func TestATensorOfARaggedField(t *testing.T) {
	const maximum, width, slots = 7, 3, 2
	ld, err := loader.New(lines{n: 45, maximum: maximum, width: width}, 2, loader.Options{Shuffle: true})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: slots}})
	require.NoError(t, err)
	var cache tensors.Cache
	lengths, headers := map[int]bool{}, map[*tensor.Dense]bool{}
	for range 4 {
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			for _, f := range b.Fields() {
				d, err := cache.Of(f)
				if len(f.Bytes) == 0 {
					require.ErrorIs(t, err, tensors.ErrNoElements)
					continue
				}
				require.NoError(t, err)
				headers[d] = true
				fresh, err := tensors.Of(f)
				require.NoError(t, err)
				require.Equal(t, tensor.Shape(f.Shape), d.Shape())
				require.Equal(t, fresh.Strides(), d.Strides())
				require.Equal(t, fresh.Data(), d.Data())
				require.Equal(t, fresh.String(), d.String())
				lengths[d.Shape()[1%d.Dims()]] = true
				if !invariants.Enabled {
					require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = cache.Of(f) }))
				}
			}
		}
	}
	require.Greater(t, len(lengths), maximum)
	if !invariants.Enabled {
		require.LessOrEqual(t, len(headers), 4*slots)
	}
	require.NoError(t, pf.Close())
}
