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
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	x += (h >> 32) * n >> 32
	// Both x and the amount are below n, so one subtraction is the modulus; as a
	// mask, since a branch would be mispredicted half the time.
	over := x - n
	return over + n&uint64(int64(over)>>63)
}

// walk follows the cycle from x back into [0, n). It leaves a cell outside in
// fewer than one of √n cases.
func (p *Permutation) walk(x uint64) uint64 {
	for x >= p.n {
		x = p.feistel(x/p.width, x%p.width)
	}
	return x
}

// fillFeistel runs four positions abreast, and steps row and column along rather
// than dividing for each.
func (p *Permutation) fillFeistel(dst []int, from uint64) {
	row, column := from/p.width, from%p.width
	var cells [4][2]uint64
	for len(dst) > 0 {
		for i := range cells {
			cells[i] = [2]uint64{row, column}
			if column++; column == p.width {
				row, column = row+1, 0
			}
		}
		r0, c0, r1, c1 := cells[0][0], cells[0][1], cells[1][0], cells[1][1]
		r2, c2, r3, c3 := cells[2][0], cells[2][1], cells[3][0], cells[3][1]
		for r := 0; r < feistelRounds; r += 2 {
			even, odd := p.keys[r], p.keys[r+1]
			c0, c1, c2, c3 = turn(c0, r0, even, p.width), turn(c1, r1, even, p.width),
				turn(c2, r2, even, p.width), turn(c3, r3, even, p.width)
			r0, r1, r2, r3 = turn(r0, c0, odd, p.height), turn(r1, c1, odd, p.height),
				turn(r2, c2, odd, p.height), turn(r3, c3, odd, p.height)
		}
		out := [4]uint64{r0*p.width + c0, r1*p.width + c1, r2*p.width + c2, r3*p.width + c3}
		n := min(len(dst), len(out))
		for i, x := range out[:n] {
			dst[i] = int(p.walk(x))
		}
		dst = dst[n:]
	}
}
