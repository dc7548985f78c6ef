package prefetch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Download sees what the stream sees when it gets there, behind the step's own work.
func TestDownload(t *testing.T) {
	for _, depth := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 10, width: 5}, cpu.Options{}, 4, loader.Options{Epochs: 1, Shuffle: true}, prefetch.Options{Depth: depth})
			for b, err := range r.pf.All(t.Context()) {
				require.NoError(t, err)
				require.NoError(t, r.spin(r.compute, time.Millisecond))
				index, err := prefetch.Download[int64](t.Context(), b, "index")
				require.NoError(t, err)
				bytes, err := prefetch.Download[uint8](t.Context(), b, "bytes")
				require.NoError(t, err)
				require.NoError(t, r.verify(reading{at: b.Position(), rows: b.Len(), index: dtype.Bytes(index), bytes: bytes}))

				var wrong *prefetch.ColumnError
				_, err = prefetch.Download[int64](t.Context(), b, "none")
				require.ErrorAs(t, err, &wrong)
				_, err = prefetch.Download[int32](t.Context(), b, "index")
				require.ErrorAs(t, err, &wrong)
				require.ErrorContains(t, err, "its elements are int64, not int32")

				// Whoever gives up loses nothing but the copy.
				require.NoError(t, r.spin(r.compute, time.Hour))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err = prefetch.Download[int64](ctx, b, "index")
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				b.Release()
				require.Panics(t, func() { _, _ = prefetch.Download[int64](t.Context(), b, "index") })
			}
			r.close()
		})
	}
}

// It is a copy in host memory too, and a field may have no elements.
func TestDownloadOfAHostBatch(t *testing.T) {
	fields := []loader.Field{{Name: "x", DType: dtype.Int32}, {Name: "none", DType: dtype.Int32, Shape: []int{0}}}
	data := loader.FromFunc(4, fields, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", int32(i))
	})
	ld, err := loader.New(data, 2, loader.Options{Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		x, err := prefetch.Download[int32](t.Context(), b, "x")
		require.NoError(t, err)
		first := int32(b.Position().First)
		require.Equal(t, []int32{first, first + 1}, x)
		x[0] = -1
		own, err := prefetch.Column[int32](b, "x")
		require.NoError(t, err)
		require.Equal(t, first, own[0], "it is a copy")
		none, err := prefetch.Download[int32](t.Context(), b, "none")
		require.NoError(t, err)
		require.Empty(t, none)
	}
	require.NoError(t, pf.Close())
}

func ExampleDownload() {
	ctx := context.Background()
	dev, err := auto.Open("cpu") // or "" for the first GPU, if there is one
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer compute.Close()
	ld, err := loader.New(Squares{}, 4, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	check(err)
	defer pf.Close()
	for batch, err := range pf.All(ctx) {
		check(err)
		y, err := prefetch.Download[float32](ctx, batch, "y")
		check(err)
		fmt.Println(y)
	}
	// Output:
	// [0 1 4 9]
	// [16 25 36 49]
	// [64 81]
}
