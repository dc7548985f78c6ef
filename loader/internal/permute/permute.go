// Package permute holds keyed bijections of [0, n): shuffles that need no
// memory, can be entered at any point, and are the same on every machine.
//
// Two ciphers share the work. Up to 256 elements it is swap-or-not (Hoang,
// Morris and Rogaway, 2012), whose bijection is over exactly n and whose
// statistics pass there; a Feistel network with cycle walking is visibly unfair
// on so few. Above, it is a Feistel network over a rectangle that just covers n
// (Black and Rogaway, 2002), which costs a fraction of the rounds and walks at
// most once in √n positions.
package permute

import (
	"math/bits"

	"github.com/leat-go/leat/loader/internal/mix"
)

// small is the largest n that swap-or-not serves.
const small = 256

// Permutation is a bijection of [0, n), chosen by a key. It is a value without
// pointers: copies are independent and any number of goroutines may read one.
type Permutation struct {
	n uint64
	// rounds is 0 for the identity of one element or none.
	rounds int
	// width × height is the Feistel network's rectangle; 0 for swap-or-not.
	width, height uint64
	keys          [maxSwapRounds]uint64
	// shifts are swap-or-not's round constants, each below n.
	shifts [maxSwapRounds]uint8
}

// New returns the permutation of [0, n) that key chooses.
func New(key, n uint64) Permutation {
	p := Permutation{n: n}
	switch {
	case n <= 1:
		return p
	case n <= small:
		p.rounds = swapRounds(n)
	default:
		p.rounds = feistelRounds
		p.width, p.height = rectangle(n)
	}
	for r := range p.rounds {
		p.keys[r] = mix.Hash(key, n, uint64(r))
		if p.width == 0 {
			shift, _ := bits.Mul64(mix.Hash(key, n, uint64(r), 1), n)
			p.shifts[r] = uint8(shift)
		}
	}
	return p
}

// Len is n.
func (p *Permutation) Len() uint64 { return p.n }

// At is where the permutation sends position i, which must be below n.
func (p *Permutation) At(i uint64) uint64 {
	if p.rounds == 0 {
		return i
	}
	if p.width == 0 {
		return p.swapOrNot(i)
	}
	return p.walk(p.feistel(i/p.width, i%p.width))
}

// Fill writes At(from), At(from+1) and so on to dst; from+len(dst) must not pass
// n. It is several times faster than as many calls of At.
func (p *Permutation) Fill(dst []int, from uint64) {
	switch {
	case p.rounds == 0:
		for i := range dst {
			dst[i] = int(from) + i
		}
	case p.width == 0:
		p.fillSwapOrNot(dst, from)
	default:
		p.fillFeistel(dst, from)
	}
}
