package compose_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

func TestEachPassOfAShuffleIsAnotherPermutation(t *testing.T) {
	for _, n := range []int{1, 2, 25, 256, 257, 1000} {
		ds := must(compose.Repeat(must(compose.Shuffle(values(upTo(0, n)...), 7)), 2))
		seen := map[int64]int{}
		var orders [][]int64
		for _, epoch := range contents(t, ds, 4) {
			orders = append(orders, epoch[:n], epoch[n:])
		}
		for _, order := range orders {
			sorted := slices.Sorted(slices.Values(order))
			require.Equal(t, upTo(0, n), sorted)
			hash := int64(0)
			for _, number := range order {
				hash = hash*31 + number
			}
			seen[hash]++
		}
		if n >= 25 {
			require.Len(t, seen, 8, "eight passes have eight orders")
		}
		require.Equal(t, contents(t, ds, 4), contents(t, must(compose.Repeat(must(compose.Shuffle(values(upTo(0, n)...), 7)), 2)), 4))
	}
}

// Positions are read in a row, backwards and anywhere, in two passes at once: what is
// worked out ahead does not show.
func TestAShuffleIsTheSameFromAnyPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 700).Draw(t, "n")
		ds := must(compose.Shuffle(values(upTo(0, n)...), rapid.Uint64().Draw(t, "seed"))).(loader.Composed)
		want := map[[2]int]int{}
		for pass := range 3 {
			for i := range n {
				_, want[[2]int{pass, i}], _ = ds.Part(uint64(pass), i)
			}
		}
		at := 0
		for range 300 {
			pass := rapid.IntRange(0, 2).Draw(t, "pass")
			switch rapid.IntRange(0, 9).Draw(t, "move") {
			case 0:
				at = rapid.IntRange(0, n-1).Draw(t, "at")
			case 1:
				at = max(at-1, 0)
			default:
				at = (at + 1) % n
			}
			_, got, _ := ds.Part(uint64(pass), at)
			require.Equal(t, want[[2]int{pass, at}], got)
		}
	})
}
