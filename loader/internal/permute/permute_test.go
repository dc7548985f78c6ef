package permute

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEveryLengthUpTo2000IsABijection(t *testing.T) {
	for n := range uint64(2001) {
		p := New(n*7+1, n)
		seen := make([]bool, n)
		for i := range n {
			at := p.At(i)
			if at >= n || seen[at] {
				t.Fatalf("n=%d: position %d gives %d, out of range or for the second time", n, i, at)
			}
			seen[at] = true
		}
	}
}

func TestFillIsAtOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 3000).Draw(t, "n")
		from := rapid.Uint64Range(0, n-1).Draw(t, "from")
		dst := make([]int, rapid.Uint64Range(0, min(n-from, 50)).Draw(t, "len"))
		p := New(rapid.Uint64().Draw(t, "key"), n)
		p.Fill(dst, from)
		for i, got := range dst {
			require.Equal(t, p.At(from+uint64(i)), uint64(got))
		}
	})
}

// A large n cannot be counted out, but an interval of it can be seen to have no
// collision, where random numbers would have many.
func TestLargeLengthsDoNotCollide(t *testing.T) {
	for _, n := range []uint64{1 << 20, 1e9, 1<<40 + 12345, 1<<62 + 1} {
		if n > math.MaxInt {
			continue // no dataset is as long where an int has 32 bits
		}
		p := New(n, n)
		const sample = 1 << 16
		seen := make(map[uint64]bool, sample)
		dst := make([]int, sample)
		p.Fill(dst, n-sample)
		for _, at := range dst {
			require.Less(t, uint64(at), n)
			require.False(t, seen[uint64(at)], "n=%d", n)
			seen[uint64(at)] = true
		}
	}
}

func TestABillionElementsTakeNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := New(1, 1e9)
	var dst [64]int
	for from := uint64(0); from < 1e9; from += 1e7 {
		p.Fill(dst[:], from)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
}

// deviation is how far the chi-square statistic of counts, which should be equal
// but for degrees of freedom, is above what chance gives, in standard deviations
// of a normal variable (Wilson and Hilferty's cube root).
func deviation(counts []int, degrees int) float64 {
	var total int
	for _, c := range counts {
		total += c
	}
	expected, sum := float64(total)/float64(len(counts)), 0.0
	for _, c := range counts {
		sum += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	d := 2 / (9 * float64(degrees))
	return (math.Cbrt(sum/float64(degrees)) - (1 - d)) / math.Sqrt(d)
}

// fair is the deviation that a test's statistics stay below: keys are fixed, so
// the verdict is always the same, and of the hundred that are looked at the
// worst of a fair shuffle is at about 2.5.
const fair = 4

// Over many keys each element must be at each position, and each pair of
// elements must be neighbours, equally often. Plain Feistel fails both for small
// n at any number of rounds.
func TestOrdersOfSmallLengthsAreFair(t *testing.T) {
	lengths := []uint64{128, 255, 256, 257, 300}
	for n := uint64(2); n <= 100; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		positions, neighbours := make([]int, n*n), make([]int, n*n)
		dst := make([]int, n)
		for key := range max(10*n, 2000) {
			p := New(key*0x9e3779b9+n, n)
			p.Fill(dst, 0)
			for i, at := range dst {
				positions[i*int(n)+at]++
				if i > 0 {
					neighbours[dst[i-1]*int(n)+at]++
				}
			}
		}
		d := int(n - 1)
		require.Less(t, deviation(positions, d*d), float64(fair), "positions, n=%d", n)
		var pairs []int
		for i, count := range neighbours {
			if i/int(n) != i%int(n) { // nothing is its own neighbour
				pairs = append(pairs, count)
			}
		}
		require.Less(t, deviation(pairs, len(pairs)-1), float64(fair), "neighbours, n=%d", n)
	}
}

// Of large lengths single elements are too many to count: positions, and the
// distances between neighbours, are counted in classes.
func TestOrdersOfLargeLengthsAreFair(t *testing.T) {
	const classes, sample = 64, 256
	for _, n := range []uint64{1024, 60032, 1e9} {
		class := func(x uint64) int { return int(x / (n / classes)) }
		positions, steps := make([]int, classes*classes), make([]int, classes)
		dst := make([]int, sample)
		for key := range uint64(1000) {
			p := New(key+n, n)
			for part := range uint64(classes) {
				few := dst[:4] // of each class, so that no key weighs much
				p.Fill(few, part*(n/classes))
				for _, at := range few {
					positions[int(part)*classes+class(uint64(at))]++
				}
			}
			p.Fill(dst, 0)
			for i, at := range dst[1:] {
				steps[class((uint64(at)+n-uint64(dst[i]))%n)]++
			}
		}
		require.Less(t, deviation(positions, classes*(classes-1)), float64(fair), "positions, n=%d", n)
		if n >= 60032 { // below, that no neighbour is at distance 0 shows
			require.Less(t, deviation(steps, classes-1), float64(fair), "steps, n=%d", n)
		}
	}
}

func TestKeysGiveUnrelatedOrders(t *testing.T) {
	for _, n := range []uint64{100, 10000} {
		a, b := New(1, n), New(2, n)
		same := 0
		for i := range n {
			if a.At(i) == b.At(i) {
				same++
			}
		}
		require.Less(t, same, 10, "n=%d: a fair pair of orders agrees in one place on average", n)
	}
}

func BenchmarkFill(b *testing.B) {
	for _, n := range []uint64{100, 256, 60000, 1e9} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := New(1, n)
			var dst [64]int
			for b.Loop() {
				p.Fill(dst[:], n/3)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/position")
		})
	}
}
