package prefetch_test

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
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// hosts are the kinds of host pipeline.
var hosts = forms[2:]

// What a host consumer keeps may be read after Close: it is only undefined.
func TestHostMemoryOutlivesClose(t *testing.T) {
	for _, form := range hosts {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 40, width: 1 << 10}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
				var dense []*tensor.Dense
				var slices [][]byte
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					d, err := b.Tensor("bytes")
					require.NoError(t, err)
					dense, slices = append(dense, d), append(slices, b.Field("bytes").Bytes)
				}
				require.NoError(t, pf.Close())
				for i := range dense {
					require.NotEmpty(t, dense[i].String())
					for j := range slices[i] {
						slices[i][j]++
					}
				}
			})
		})
	}
}

// A slot that is leased when Close is called is its holder's as before, and so is what
// it keeps of it behind the Release.
func TestALeasedHostSlotOutlivesClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pf := hosts[0].open(t, canary{n: 40, width: 64}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
		rd, err := pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		var left *prefetch.CloseError
		require.ErrorAs(t, pf.Close(), &left)
		want := make([]byte, 64)
		fill(want, 0)
		mem := b.Field("bytes").Bytes
		require.Equal(t, want, mem[:64])
		b.Release()
		require.NotPanics(t, func() { _ = bytes.Clone(mem) })
		require.NoError(t, rd.Close())
	})
}

// A clone is the caller's: no later batch shows in it, nor does it in them.
func TestClonedTensors(t *testing.T) {
	for _, form := range hosts {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 38, width: 6}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
				var all []*tensor.Dense
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					d, err := b.CloneTensor("bytes")
					require.NoError(t, err)
					require.Equal(t, tensor.Shape{b.Len(), 6}, d.Shape())
					require.Equal(t, b.Field("bytes").Bytes, d.Data())
					if all = append(all, d); len(all) == 1 {
						d.Data().([]byte)[0]++
						require.NotEqual(t, b.Field("bytes").Bytes, d.Data())
						d.Data().([]byte)[0]--
					}
				}
				require.NoError(t, pf.Close())
				require.Len(t, all, 10)
				want := make([]byte, 6)
				for i := range 38 {
					fill(want, i)
					require.Equal(t, want, all[i/4].Data().([]byte)[i%4*6:][:6])
				}
			})
		})
	}
	ld, err := loader.New(everyType(), 4, loader.Options{})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		for dt := dtype.Bool; dt.Valid(); dt++ {
			mine, err := b.CloneTensor(dt.String())
			require.NoError(t, err)
			theirs, err := b.Tensor(dt.String())
			require.NoError(t, err)
			require.Equal(t, theirs.Data(), mine.Data())
		}
		_, err = b.CloneTensor("empty")
		require.ErrorContains(t, err, "no elements")
	}
	require.NoError(t, pf.Close())
}

// In a build that checks, what was kept of a batch never shows another's numbers.
func TestKeptMemoryIsPoison(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs -tags invariants")
	}
	for _, form := range hosts {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 40, width: 6}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
				poison := bytes.Repeat([]byte{0xff}, 24)
				var dense []*tensor.Dense
				var slices [][]byte
				for range 2 {
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						for i := range dense {
							require.Equal(t, poison, dense[i].Data())
							require.Equal(t, poison, slices[i])
						}
						d, err := b.Tensor("bytes")
						require.NoError(t, err)
						dense, slices = append(dense, d), append(slices, b.Field("bytes").Bytes)
					}
				}
				slices[19][7] = 9
				var failed error
				for _, err := range pf.Batches(t.Context()) {
					if failed = err; err != nil {
						break
					}
				}
				var found *pinnedpool.OverwriteError
				require.ErrorAs(t, failed, &found)
				require.ErrorContains(t, failed, `field "bytes", row 1`)
				require.NoError(t, pf.Close())
			})
		})
	}
}

func TestTensorsFromSeveralGoroutines(t *testing.T) {
	for _, form := range hosts {
		t.Run(form.name, func(t *testing.T) {
			pf := form.open(t, canary{n: 50, width: 6}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						d, err := b.Tensor("bytes")
						if err != nil || d.Shape()[0] != b.Len() || !bytes.Equal(d.Data().([]byte), b.Field("bytes").Bytes) {
							t.Error(err)
						}
						c, err := b.CloneTensor("bytes")
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

// Whatever a user did to the header of an earlier batch, the next one comes as its
// layout says, element by element.
func TestATensorIsRestored(t *testing.T) {
	other := tensor.New(tensor.WithShape(4, 4), tensor.WithBacking(make([]byte, 16)))
	for name, c := range map[string]struct {
		shape []int
		do    func(t *testing.T, d *tensor.Dense)
	}{
		"transposed":           {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T()) }},
		"transposed in memory": {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T()); require.NoError(t, d.Transpose()) }},
		"axes permuted":        {[]int{4, 4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.T(2, 0, 1)) }},
		"reshaped":             {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.Reshape(2, 8)) }},
		"a column flattened":   {[]int{1}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.Reshape(4)) }},
		"a vector stood up":    {nil, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.Reshape(4, 1)) }},
		"reshaped in place":    {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Shape()[0], d.Shape()[1] = 2, 8 }},
		"strides changed":      {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Strides()[0], d.Strides()[1] = 1, 4 }},
		"masked":               {[]int{4}, func(t *testing.T, d *tensor.Dense) { require.NoError(t, d.MaskedEqual(byte(7))) }},
		"sliced": {[]int{4}, func(t *testing.T, d *tensor.Dense) {
			v, err := d.Slice(tensor.S(1, 3), tensor.S(0, 2))
			require.NoError(t, err)
			*d = *v.(*tensor.Dense)
		}},
		"other memory": {[]int{4}, func(t *testing.T, d *tensor.Dense) { *d = *other.Clone().(*tensor.Dense) }},
		"zeroed":       {[]int{4}, func(t *testing.T, d *tensor.Dense) { d.Zero() }},
		"returned":     {[]int{4}, func(t *testing.T, d *tensor.Dense) { *d = tensor.Dense{} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := shaped{n: 40, shape: c.shape}
				ld, err := loader.New(data, 4, loader.Options{Workers: 1})
				require.NoError(t, err)
				pf, err := prefetch.NewHost(ld, prefetch.Options{HostSlots: 1})
				require.NoError(t, err)
				batches := 0
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					d, err := b.Tensor("x")
					require.NoError(t, err)
					require.Equal(t, append(tensor.Shape{4}, c.shape...), d.Shape())
					require.Empty(t, d.Mask())
					it, i := d.Iterator(), 0
					for at, err := it.Next(); err == nil; at, err = it.Next() {
						require.Equal(t, data.at(4*batches+i/data.size(), i%data.size()), d.Data().([]byte)[at])
						i++
					}
					require.Equal(t, 4*data.size(), i)
					batches++
					c.do(t, d)
				}
				require.Equal(t, 10, batches)
				require.NoError(t, pf.Close())
			})
		})
	}
}

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

func (s shaped) Read(_ context.Context, index int, row *loader.Row) error {
	x := row.Uint8s(0)
	for i := range x {
		x[i] = s.at(index, i)
	}
	return nil
}
