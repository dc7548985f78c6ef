package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestGatherFromDeviceAndHostMemory(t *testing.T) {
	const row, count = 7, 5
	r := kerneltest.CPU(t)
	table := randomBytes(1, row*count)
	host := r.Host(len(table))
	copy(host.Bytes(), table)
	hostView, err := host.View()
	require.NoError(t, err)
	index := []int64{4, 0, 0, -1, 3, 5, 1 << 32, 2}
	var want []byte
	for _, i := range index {
		if i < 0 || i >= count {
			want = append(want, make([]byte, row)...)
		} else {
			want = append(want, table[i*row:][:row]...)
		}
	}

	out := r.Alloc(len(want))
	require.NoError(t, Gather(r.Stream, out, hostView, r.Upload(dtype.Bytes(index)), GatherParams{RowBytes: row, Index: dtype.Int64}))
	require.Equal(t, want, r.Download(out))

	narrow := make([]int32, len(index))
	for i, x := range index {
		narrow[i] = int32(min(x, count))
	}
	out = r.Alloc(len(want))
	require.NoError(t, Gather(r.Stream, out, r.Upload(table), r.Upload(dtype.Bytes(narrow)), GatherParams{RowBytes: row, Index: dtype.Int32}))
	require.Equal(t, want, r.Download(out))
}

func TestGatherNamesEveryMistake(t *testing.T) {
	r := kerneltest.CPU(t)
	err := Gather(r.Stream, r.Alloc(4), r.Alloc(4), r.Alloc(4), GatherParams{Index: dtype.Uint8, Blocks: -1})
	for _, part := range []string{"Index is uint8", "RowBytes is 0", "Blocks is -1"} {
		require.ErrorContains(t, err, part)
	}
	err = Gather(r.Stream, r.Alloc(4), r.Alloc(4), r.Alloc(8).Slice(1, 6), GatherParams{Index: dtype.Int32, RowBytes: 3})
	for _, part := range []string{"index.Size() is 6", "table.Size() is 4", "out.Size() is 4, want 3", "index.Address() % 4 is"} {
		require.ErrorContains(t, err, part)
	}
}
