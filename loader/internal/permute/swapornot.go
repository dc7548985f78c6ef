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

func (p *Permutation) swap(r int, x uint64) uint64 {
	y := uint64(p.shifts[r]) - x
	if int64(y) < 0 {
		y += p.n
	}
	h := (p.keys[r] ^ max(x, y)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	coin := uint64(int64(h) >> 63) // all ones or none: a branch would be mispredicted half the time
	return x ^ (x^y)&coin
}

// fillSwapOrNot runs four positions abreast: a round is a chain of dependent
// multiplications, which leaves the processor idle on one position alone.
func (p *Permutation) fillSwapOrNot(dst []int, from uint64) {
	for ; len(dst) >= 4; dst, from = dst[4:], from+4 {
		a, b, c, d := from, from+1, from+2, from+3
		for r := range p.rounds {
			a, b, c, d = p.swap(r, a), p.swap(r, b), p.swap(r, c), p.swap(r, d)
		}
		dst[0], dst[1], dst[2], dst[3] = int(a), int(b), int(c), int(d)
	}
	for i := range dst {
		dst[i] = int(p.swapOrNot(from + uint64(i)))
	}
}
