package loader_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

func order(t require.TestingT, n int, seed uint64, epoch int) []int {
	l, err := loader.New(numbers{n: n}, 1, loader.Options{Shuffle: true, Seed: seed})
	require.NoError(t, err)
	o := l.Order(epoch)
	indices := make([]int, n)
	o.Fill(indices, 0)
	return indices
}

// The orders are a promise: a state saved by one release is gone on from by the
// next, and on another machine. This test is never brought up to date.
func TestOrdersNeverChange(t *testing.T) {
	require.Equal(t, []int{2, 6, 3, 8, 9, 1, 0, 7, 5, 4}, order(t, 10, 1, 0))
	require.Equal(t, []int{3, 9, 0, 5, 2, 6, 1, 7, 8, 4}, order(t, 10, 1, 1))
	require.Equal(t, []int{47114, 15594, 16330, 58860, 39962, 17096, 50934, 26416, 35004, 6406}, order(t, 60000, 1, 0)[:10])
}

func TestEpochsAndSeedsHaveTheirOwnOrder(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3) {
		for epoch := range 3 {
			o := order(t, 100, seed, epoch)
			require.Equal(t, o, order(t, 100, seed, epoch))
			key := string(intsToBytes(o))
			require.False(t, seen[key], "seed %d, epoch %d", seed, epoch)
			seen[key] = true
		}
	}
}

func intsToBytes(s []int) (b []byte) {
	for _, x := range s {
		b = append(b, byte(x))
	}
	return b
}

func TestOrderWithoutShuffleIsByIndex(t *testing.T) {
	l, err := loader.New(numbers{n: 5}, 1, loader.Options{})
	require.NoError(t, err)
	o := l.Order(3)
	dst := make([]int, 12)
	o.Fill(dst, 3)
	require.Equal(t, []int{3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, dst, "wraps round past the end")
	require.Equal(t, 2, l.Order(0).At(7))
}

func TestFillAgreesWithAtAndWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 700).Draw(t, "n")
		l, err := loader.New(numbers{n: n}, 1, loader.Options{Shuffle: true, Seed: rapid.Uint64().Draw(t, "seed")})
		require.NoError(t, err)
		o := l.Order(rapid.IntRange(0, 5).Draw(t, "epoch"))
		from := rapid.Int64Range(0, int64(3*n)).Draw(t, "from")
		dst := make([]int, rapid.IntRange(0, 2*n).Draw(t, "len"))
		o.Fill(dst, from)
		for i, got := range dst {
			require.Equal(t, o.At(from+int64(i)), got)
		}
	})
}
