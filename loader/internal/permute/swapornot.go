package permute

import "math/bits"

// maxSwapRounds is swapRounds(small).
const maxSwapRounds = 60

// swapRounds is 6·lg n + 12, with lg rounded up: the number at which no
// statistic tells the permutation from a random one for any n up to small.
func swapRounds(n uint64) int { return 6*bits.Len64(n-1) + 12 }

// swapOrNot pairs x with shift-x in every round, and swaps the two or not by a
// keyed coin that both agree on.
func (p *Permutation) swapOrNot(x uint64) uint64 {
	for r := range p.rounds {
		x = p.swap(r, x)
	}
	return x
}

// swap is round r.
func (p *Permutation) swap(r int, x uint64) uint64 {
	return swap(x, uint64(p.shifts[r]), p.keys[r], p.n)
}

func swap(x, shift, key, n uint64) uint64 {
	y := shift - x
	y = min(y, y+n) // below 0 it has wrapped round to more than y+n
	h := (key ^ max(x, y)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	coin := uint64(int64(h) >> 63) // all ones or none: a branch would be mispredicted half the time
	return x ^ (x^y)&coin
}

// fillSwapOrNot works on several positions abreast.
func (p *Permutation) fillSwapOrNot(dst []int, from uint64) {
	n := p.n
	var x [lanes]uint64
	for len(dst) > 0 {
		for i := range x {
			x[i] = min(from+uint64(i), n-1) // positions past the end are not asked for
		}
		for r := range p.rounds {
			shift, key := uint64(p.shifts[r]), p.keys[r]
			for i := range x {
				x[i] = swap(x[i], shift, key, n)
			}
		}
		filled := min(len(dst), lanes)
		for i := range dst[:filled] {
			dst[i] = int(x[i])
		}
		dst, from = dst[filled:], from+lanes
	}
}
