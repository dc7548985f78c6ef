package order

import "slices"

// An access is one call's use of a range of memory.
type access struct {
	stream *stream
	number uint64 // on the stream, from 1
	write  bool
	site   *site
	block  *block // where lo lay then, nil if in none that is known
}

// before reports whether a is among what seen comes after.
func (a *access) before(seen clock) bool { return a.number <= seen.at(a.stream.index) }

func (a *access) same(b *access) bool {
	return a.stream == b.stream && a.number == b.number && a.write == b.write
}

// A cell is a range of memory whose bytes were all used by the same accesses: those
// that a later access may yet be unordered with. An access is left out only when
// another one took its place: a later write that comes after it, or for a read a
// later read that does. Whatever is unordered with the one left out is unordered with
// the other too, and both conflict with it.
type cell struct {
	lo, hi uint64
	list   []access
}

// shadow keeps the cells in order of their address, in chunks, so that adding one
// moves few. Cells don't overlap; there may be gaps.
type shadow struct {
	chunks  [][]cell // none is empty
	cells   int
	scratch []cell
	spare   [][]access // lists that no cell has
}

const chunkCells = 128

// find is the place of the first cell that ends behind address p.
func (m *shadow) find(p uint64) (chunk, i int) {
	chunk, _ = slices.BinarySearchFunc(m.chunks, p, func(cells []cell, p uint64) int {
		if cells[len(cells)-1].hi > p {
			return 1
		}
		return -1
	})
	if chunk == len(m.chunks) {
		return chunk, 0
	}
	i, _ = slices.BinarySearchFunc(m.chunks[chunk], p, func(c cell, p uint64) int {
		if c.hi > p {
			return 1
		}
		return -1
	})
	return chunk, i
}

// conflict is an access that a new one of [lo, hi), which comes after seen, is
// unordered with, if there is any.
func (m *shadow) conflict(lo, hi uint64, write bool, seen clock) (with access, at cell, found bool) {
	chunk, i := m.find(lo)
	for ; chunk < len(m.chunks); chunk, i = chunk+1, 0 {
		for ; i < len(m.chunks[chunk]); i++ {
			c := &m.chunks[chunk][i]
			if c.lo >= hi {
				return with, at, false
			}
			for k := range c.list {
				if a := &c.list[k]; (write || a.write) && !a.before(seen) {
					return *a, cell{lo: max(lo, c.lo), hi: min(hi, c.hi)}, true
				}
			}
		}
	}
	return with, at, false
}

// add notes an access to [lo, hi) that comes after seen.
func (m *shadow) add(a access, lo, hi uint64, seen clock) {
	chunk, i := m.find(lo)
	out := m.scratch[:0]
	at := lo // all below is in out
	endChunk, end := chunk, i
	for endChunk < len(m.chunks) {
		if end == len(m.chunks[endChunk]) {
			endChunk, end = endChunk+1, 0
			continue
		}
		c := m.chunks[endChunk][end]
		if c.lo >= hi {
			break
		}
		end++
		if c.lo < lo { // the part in front stays as it is
			out = append(out, cell{c.lo, lo, m.clone(c.list)})
			c.lo = lo
		}
		var behind []access
		if c.hi > hi {
			behind = m.clone(c.list)
		}
		if at < c.lo {
			out = m.join(out, cell{at, c.lo, m.list(a)})
		}
		at = min(c.hi, hi)
		out = m.join(out, cell{c.lo, at, take(c.list, &a, seen)})
		if behind != nil {
			out = append(out, cell{hi, c.hi, behind})
		}
	}
	if at < hi {
		out = m.join(out, cell{at, hi, m.list(a)})
	}
	m.replace(chunk, i, endChunk, end, out)
	clear(out)
	m.scratch = out[:0]
}

// take adds a to a cell's list, in the place of those that it stands for.
func take(list []access, a *access, seen clock) []access {
	kept := list[:0]
	for _, x := range list {
		if !x.before(seen) || x.write && !a.write {
			kept = append(kept, x)
		}
	}
	kept = append(kept, *a)
	clear(kept[len(kept):max(len(kept), len(list))])
	return kept
}

// join appends a cell, to the last one if that is alike.
func (m *shadow) join(cells []cell, c cell) []cell {
	if n := len(cells); n > 0 {
		last := &cells[n-1]
		alike := func(a, b access) bool { return a.same(&b) }
		if last.hi == c.lo && slices.EqualFunc(last.list, c.list, alike) {
			last.hi = c.hi
			clear(c.list)
			m.spare = append(m.spare, c.list[:0])
			return cells
		}
	}
	return append(cells, c)
}

func (m *shadow) clone(list []access) []access { return append(m.list(), list...) }

// list makes a list, of one that is not in use if there is any.
func (m *shadow) list(of ...access) []access {
	var l []access
	if n := len(m.spare); n > 0 {
		l, m.spare[n-1] = m.spare[n-1], nil
		m.spare = m.spare[:n-1]
	}
	return append(l, of...)
}

// replace puts cells in the place of those from one place to another.
func (m *shadow) replace(chunk, i, endChunk, end int, cells []cell) {
	if chunk == len(m.chunks) { // behind all others
		if len(cells) == 0 {
			return
		}
		if chunk == 0 {
			m.chunks = append(m.chunks, nil)
		} else {
			chunk--
		}
		i = len(m.chunks[chunk])
		endChunk, end = chunk, i
	}
	m.cells += len(cells)
	if chunk == endChunk {
		m.cells -= end - i
		m.chunks[chunk] = slices.Replace(m.chunks[chunk], i, end, cells...)
	} else {
		m.cells -= len(m.chunks[chunk]) - i
		m.chunks[chunk] = slices.Replace(m.chunks[chunk], i, len(m.chunks[chunk]), cells...)
		for k := chunk + 1; k < endChunk; k++ {
			m.cells -= len(m.chunks[k])
		}
		if endChunk < len(m.chunks) && end > 0 {
			m.cells -= end
			m.chunks[endChunk] = slices.Delete(m.chunks[endChunk], 0, end)
		}
		m.chunks = slices.Delete(m.chunks, chunk+1, min(endChunk, len(m.chunks)))
	}
	switch n := len(m.chunks[chunk]); {
	case n == 0:
		m.chunks = slices.Delete(m.chunks, chunk, chunk+1)
	case n > chunkCells:
		var parts [][]cell
		for part := range slices.Chunk(m.chunks[chunk], chunkCells/2) {
			parts = append(parts, slices.Clone(part))
		}
		m.chunks = slices.Replace(m.chunks, chunk, chunk+1, parts...)
	}
}

// drop forgets the accesses to [lo, hi).
func (m *shadow) drop(lo, hi uint64) {
	chunk, i := m.find(lo)
	out := m.scratch[:0]
	endChunk, end := chunk, i
	for endChunk < len(m.chunks) {
		if end == len(m.chunks[endChunk]) {
			endChunk, end = endChunk+1, 0
			continue
		}
		c := m.chunks[endChunk][end]
		if c.lo >= hi {
			break
		}
		end++
		if c.lo < lo {
			out = append(out, cell{c.lo, lo, m.clone(c.list)})
		}
		if c.hi > hi {
			out = append(out, cell{hi, c.hi, m.clone(c.list)})
		}
		clear(c.list)
		m.spare = append(m.spare, c.list[:0])
	}
	if endChunk > chunk || end > i {
		m.replace(chunk, i, endChunk, end, out)
	}
	clear(out)
	m.scratch = out[:0]
}

// sweep forgets the cells of which everything is among what seen comes after.
func (m *shadow) sweep(seen clock) {
	m.cells = 0
	for k, cells := range m.chunks {
		m.chunks[k] = slices.DeleteFunc(cells, func(c cell) bool {
			return !slices.ContainsFunc(c.list, func(a access) bool { return !a.before(seen) })
		})
		m.cells += len(m.chunks[k])
	}
	m.chunks = slices.DeleteFunc(m.chunks, func(cells []cell) bool { return len(cells) == 0 })
}
