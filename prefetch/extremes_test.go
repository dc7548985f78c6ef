package prefetch_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// numbers calls f with each numeric field of a struct type.
func numbers(of any, f func(name string, index int)) {
	t := reflect.TypeOf(of)
	for i := range t.NumField() {
		if k := t.Field(i).Type.Kind(); k >= reflect.Int && k <= reflect.Float64 {
			f(t.Field(i).Name, i)
		}
	}
}

// with is a copy of the struct v with a number set.
func with[T any](v T, index int, number int64) T {
	reflect.ValueOf(&v).Elem().Field(index).SetInt(number)
	return v
}

var extremes = []int64{math.MinInt64, math.MinInt64 + 1, -2, math.MaxInt64 - 1, math.MaxInt64}

// Each number of the options at its extremes is refused by name when the pipeline is
// made, or serves; new ones too.
func TestNumbersAtTheirExtremes(t *testing.T) {
	ld, err := loader.New(canary{n: 8, width: 4}, 2, plain)
	require.NoError(t, err)
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	makes := map[string]func(prefetch.Options) (*prefetch.Prefetcher, error){
		"New":     func(o prefetch.Options) (*prefetch.Prefetcher, error) { return prefetch.New(compute, ld, o) },
		"NewHost": func(o prefetch.Options) (*prefetch.Prefetcher, error) { return prefetch.NewHost(ld, o) },
	}
	for how, make := range makes {
		all := prefetch.Options{}
		numbers(all, func(name string, i int) {
			all = with(all, i, -2)
			for _, number := range extremes {
				pf, err := make(with(prefetch.Options{}, i, number))
				if err != nil {
					require.ErrorContains(t, err, name, how)
					continue
				}
				require.Positive(t, number, "%s: %s", how, name)
				n := 0
				for _, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					n++
				}
				require.Equal(t, 4, n)
				require.NoError(t, pf.Close())
			}
		})
		_, err := make(all)
		numbers(all, func(name string, _ int) {
			require.ErrorContains(t, err, name+" is -2", how)
		})
	}
	require.Equal(t, device.Usage{Streams: 1, Allocations: dev.Usage().Allocations}, dev.Usage())
}

// Numbers each of which would do are refused where they are too much together.
func TestNumbersTooLargeTogether(t *testing.T) {
	const far = 1 << 16
	ld, err := loader.New(canary{n: 8, width: 1 << 20}, 2, plain)
	require.NoError(t, err)
	none, err := loader.New(nothing{}, 1, loader.Options{})
	require.NoError(t, err)
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	for _, c := range []struct {
		o     prefetch.Options
		names []string
	}{
		{prefetch.Options{Depth: far, BatchesPerCopy: far}, []string{"Depth", "BatchesPerCopy"}},
		{prefetch.Options{Depth: far, Streams: prefetch.Streams{Max: far}}, []string{"Depth", "Streams.Max"}},
		{prefetch.Options{BatchesPerCopy: far, Streams: prefetch.Streams{Max: far}}, []string{"BatchesPerCopy", "Streams.Max"}},
		{prefetch.Options{Depth: far, Timing: true, BatchesPerCopy: 8, Streams: prefetch.Streams{Max: 1}, Memory: prefetch.Memory{HostSlots: far}}, []string{"HostSlots"}},
	} {
		for _, ld := range []*loader.Loader{ld, none} {
			_, err := prefetch.New(compute, ld, c.o)
			for _, name := range c.names {
				require.ErrorContains(t, err, name)
			}
		}
	}
	require.Equal(t, device.Usage{Streams: 1, Allocations: dev.Usage().Allocations}, dev.Usage())
}

func TestNumbersOfAnOutputAndOfShapesAtTheirExtremes(t *testing.T) {
	r := newRig(t, canary{n: 8, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{})
	result := func(o prefetch.Output) (err error) {
		for _, failed := range r.pf.Map(t.Context(), o, func(b prefetch.Batch, out prefetch.Fields) error { return nil }) {
			err = failed
		}
		return err
	}
	numbers(prefetch.Output{}, func(name string, i int) {
		for _, number := range extremes {
			require.ErrorContains(t, result(with(prefetch.Output{Fields: r.data.Fields()}, i, number)), "Output."+name)
		}
	})
	for _, shape := range [][]int{{math.MaxInt}, {math.MaxInt/2 + 1}, {math.MaxInt32, math.MaxInt32, 8}, {-1}, {math.MinInt}} {
		fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: shape}}
		err := result(prefetch.Output{Fields: fields, Slots: -1})
		require.ErrorContains(t, err, "Output.Slots is -1")
		require.ErrorContains(t, err, "Output.Fields")
		apply := func(*device.Stream, prefetch.Fields, prefetch.Fields) error { return nil }
		_, err = prefetch.New(r.compute, r.ld, prefetch.Options{Depth: -3, Transform: &prefetch.Transform{Out: fields, Scratch: fields, Apply: apply}})
		for _, name := range []string{"Depth is -3", "Transform.Out", "Transform.Scratch"} {
			require.ErrorContains(t, err, name)
		}
	}
	large := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{math.MaxInt / 4}}}
	require.ErrorIs(t, result(prefetch.Output{Fields: large, Slots: 1 << 16}), device.ErrOutOfMemory)
	r.close()
}
