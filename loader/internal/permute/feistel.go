package permute

import "math"

// feistelRounds is even, so that both halves are mixed equally often; eight is
// the least that passes for every n above small.
const feistelRounds = 8

// rectangle returns a width and a height whose product just covers n: less than
// one row too much.
func rectangle(n uint64) (width, height uint64) {
	width = uint64(math.Sqrt(float64(n)))
	return width, (n + width - 1) / width
}

// feistel maps the rectangle's cell (row, column) to another cell's number.
func (p *Permutation) feistel(row, column uint64) uint64 {
	for r := 0; r < feistelRounds; r += 2 {
		column = turn(column, row, p.keys[r], p.width)
		row = turn(row, column, p.keys[r+1], p.height)
	}
	return row*p.width + column
}

// turn moves x, which is below n, by a keyed amount that depends on by.
func turn(x, by, key, n uint64) uint64 {
	h := (by ^ key) * 0xd6e8feb86659fd93
	x += uint64(uint32(h^h>>32)) * n >> 32
	// Both x and the amount are below n, so one subtraction is the modulus, and
	// where it is one too many it wraps round to more than x. A branch would be
	// mispredicted half the time.
	return min(x, x-n)
}

// walk follows the cycle from x back into [0, n). It leaves a cell outside in
// fewer than one of √n cases.
func (p *Permutation) walk(x uint64) uint64 {
	for x >= p.n {
		x = p.feistel(x/p.width, x%p.width)
	}
	return x
}

// lanes is how many positions are worked on abreast. A round is a chain of
// multiplications, each waiting for the last; on one position alone they would
// leave the processor idle most of the time.
const lanes = 16

// fillFeistel steps row and column along rather than dividing for each position.
func (p *Permutation) fillFeistel(dst []int, from uint64) {
	row, column := from/p.width, from%p.width
	width, height := p.width, p.height
	keys := (*[feistelRounds]uint64)(p.keys[:])
	var rows, columns [lanes]uint64
	for len(dst) > 0 {
		for i := range rows {
			rows[i], columns[i] = row, column
			if column++; column == width {
				row, column = row+1, 0
			}
		}
		for r := 0; r < feistelRounds; r += 2 {
			even, odd := keys[r], keys[r+1]
			for i := range rows {
				columns[i] = turn(columns[i], rows[i], even, width)
			}
			for i := range rows {
				rows[i] = turn(rows[i], columns[i], odd, height)
			}
		}
		n := min(len(dst), lanes)
		for i := range dst[:n] {
			dst[i] = int(p.walk(rows[i]*width + columns[i]))
		}
		dst = dst[n:]
	}
}
