package chain_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// table is a dataset of so many columns, of four sizes in turn: one of them none.
type table struct{ rows, columns int }

func (d table) Len() int { return d.rows }

func (d table) width(column int) int { return []int{1, 3, 0, 70}[column%4] }

func (d table) Fields() []loader.Field {
	fields := make([]loader.Field, d.columns)
	for i := range fields {
		fields[i] = loader.Field{Name: fmt.Sprint("column ", i), DType: dtype.Int32, Shape: []int{d.width(i)}}
	}
	return fields
}

func (d table) value(row, column, i int) int32 { return int32(row*100_000 + column*100 + i) }

func (d table) Read(_ context.Context, index int, row *loader.Row) error {
	for c, f := range row.Layout().Fields() {
		column := loader.Column[int32](row, f.Name)
		for i := range column {
			column[i] = d.value(index, c, i)
		}
	}
	return nil
}

// negate is an operation of one's own: it widens int32 to int64, and counts its calls.
func negate(field string, shaped, applied *int) chain.Op {
	kernel := &device.Kernel{Name: "negate", Go: func(a *device.Args) {
		out, in := device.Elements[int64](a, 0), device.Elements[int32](a, 1)
		for i, v := range in {
			out[i] = -int64(v)
		}
	}}
	return chain.Op{
		Field: field,
		Output: func(f loader.Field) (loader.Field, error) {
			*shaped++
			f.DType = dtype.Int64
			return f, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			*applied++
			launch := device.Launch{Kernel: kernel, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
			out.View.Out(&launch.Args)
			in.View.In(&launch.Args)
			return s.Launch(&launch)
		},
	}
}

// A full batch takes one copy for all neighbouring fields that no operation changes, a
// short one a copy of the rows in use for each; whichever the fields are, every value
// arrives.
func TestNeighboursTravelTogether(t *testing.T) {
	const rows, batch, columns = 11, 4, 23
	d := table{rows, columns}
	for name, c := range map[string]struct {
		changed []int
		copies  int // of a full batch: of fields that have bytes
	}{
		"none":           {nil, 1},
		"the first":      {[]int{0}, 1},
		"the last":       {[]int{22}, 1},
		"in the middle":  {[]int{9, 10}, 2},
		"here and there": {[]int{0, 3, 8, 22}, 3},
		"every other":    {[]int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			drv, err := cpu.New(cpu.Options{Adversary: &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true}})
			require.NoError(t, err)
			tap := devicetest.NewTap(drv)
			dev := device.New(tap)
			compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
			require.NoError(t, err)
			var ops []chain.Op
			changed := map[int]bool{}
			var shaped, applied int
			for _, i := range c.changed {
				ops = append(ops, negate(fmt.Sprint("column ", i), &shaped, &applied))
				changed[i] = true
			}
			transform, err := chain.New(d.Fields(), ops...)
			require.NoError(t, err)
			ld, err := loader.New(d, batch, loader.Options{Epochs: 1, Workers: 2})
			require.NoError(t, err)
			pf, err := prefetch.New(compute, ld, prefetch.Options{Transform: transform})
			require.NoError(t, err)

			copies := tap.Arm(devicetest.Rule{Op: devicetest.CopyD2D})
			short := 0
			for i := range columns {
				if !changed[i] && d.width(i) > 0 {
					short++
				}
			}
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				for i, f := range b.Fields() {
					host := make([]byte, f.View.Size())
					require.NoError(t, compute.CopyD2H(host, f.View))
					require.NoError(t, compute.Synchronize(t.Context()))
					for v := range b.Len() * d.width(i) {
						want := d.value(int(b.Position().First)+v/d.width(i), i, v%d.width(i))
						if changed[i] {
							require.EqualValues(t, -int64(want), binary.LittleEndian.Uint64(host[8*v:]))
						} else {
							require.EqualValues(t, want, binary.LittleEndian.Uint32(host[4*v:]))
						}
					}
				}
			}
			require.EqualValues(t, 2*c.copies+short, copies.Fired())
			require.Equal(t, len(c.changed), shaped)
			require.Equal(t, 3*len(c.changed), applied)
			require.NoError(t, pf.Close())
			require.NoError(t, compute.Close())
			require.NoError(t, dev.Close())
		})
	}
}

// With thousands of fields a batch takes as many calls of the device as with three.
func TestThousandsOfFieldsAreOneCopy(t *testing.T) {
	for _, columns := range []int{3, 4000} {
		d := table{rows: 16, columns: columns}
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		tap := devicetest.NewTap(drv)
		dev := device.New(tap)
		compute, err := dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		transform, err := chain.New(d.Fields(), chain.OneHot("column 0", 10))
		require.NoError(t, err)
		ld, err := loader.New(d, 4, loader.Options{Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.New(compute, ld, prefetch.Options{Transform: transform})
		require.NoError(t, err)
		copies, launches := tap.Arm(devicetest.Rule{Op: devicetest.CopyD2D}), tap.Arm(devicetest.Rule{Op: devicetest.Launch})
		for _, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
		}
		require.EqualValues(t, 4, copies.Matched())
		require.EqualValues(t, 4, launches.Matched())
		require.NoError(t, pf.Close())
		require.NoError(t, compute.Close())
		require.NoError(t, dev.Close())
	}
}
