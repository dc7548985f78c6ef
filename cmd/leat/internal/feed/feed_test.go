package feed_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
)

func TestRandomFillsEveryByteAnew(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 4097, 9 << 20} {
		a, b := make([]byte, n), make([]byte, n)
		feed.Random(a)
		feed.Random(b)
		if n >= 7 {
			require.False(t, bytes.Equal(a, b))
		}
		for at := 0; at+64 <= n; at += 64 {
			require.NotEqual(t, make([]byte, 64), a[at:at+64], "bytes from %d were left out", at)
		}
	}
}

// epochs gives every batch of so many epochs to check, from slots that come round.
func epochs(t require.TestingT, ld *loader.Loader, slots, epochs int, check func(f loader.Filled)) {
	heap, err := loader.NewHeap(ld.Layout().Size(), slots)
	require.NoError(t, err)
	run := ld.Start(context.Background(), loader.Cursor{}, heap)
	for ended := 0; ended < epochs; {
		f, err := run.Next(context.Background())
		if errors.Is(err, loader.ErrEpochEnd) {
			ended++
			continue
		}
		require.NoError(t, err)
		check(f)
		heap.Put(f.Slot)
	}
	require.NoError(t, run.Close())
}

func TestStampedSamplesDifferByTheirHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Range(8, 200).Draw(t, "words") * 8
		n := rapid.IntRange(1, 40).Draw(t, "samples")
		data := feed.NewStamped(n, bytes)
		ld, err := loader.New(data, 1, loader.Options{Shuffle: true, Workers: rapid.IntRange(1, 4).Draw(t, "workers")})
		require.NoError(t, err)
		sums := make(map[uint64]bool)
		epochs(t, ld, rapid.IntRange(1, 5).Draw(t, "slots"), 2, func(f loader.Filled) {
			index := int(binary.LittleEndian.Uint64(f.Slot.Bytes))
			order := ld.Order(f.Epoch)
			require.Equal(t, order.At(f.Position), index)
			sum := kernels.ChecksumOf(f.Slot.Bytes[:bytes])
			require.Equal(t, sum, data.Sum(index), "a slot's bytes behind the head are not the filler")
			sums[sum] = true
		})
		require.Len(t, sums, n, "two samples have one checksum")
	})
}

func TestRowsSumIsThatOfTheBatch(t *testing.T) {
	data := feed.NewRows(100, 3, 5)
	require.Equal(t, 100, data.Len())
	require.Equal(t, []int{3, 5}, data.Fields()[0].Shape)
	ld, err := loader.New(data, 16, loader.Options{Shuffle: true, Workers: 2})
	require.NoError(t, err)
	scratch := make([]byte, 16*15)
	var rows int
	epochs(t, ld, 3, 2, func(f loader.Filled) {
		rows += f.N
		require.Equal(t, kernels.ChecksumOf(f.Slot.Bytes[:f.N*15]), data.Sum(ld.Order(f.Epoch), f.Position, f.N, scratch))
	})
	require.Equal(t, 200, rows)
}
