package order

// A clock says of each stream, by its index, how many of its accesses something
// comes after. A stream that it has no number for counts 0.
type clock []uint64

func (c clock) at(index int) uint64 {
	if index < len(c) {
		return c[index]
	}
	return 0
}

// set makes c say that it comes after n accesses of a stream.
func (c *clock) set(index int, n uint64) {
	c.grow(index + 1)
	(*c)[index] = n
}

// join makes c come after all that o comes after, and reports whether it did not
// before.
func (c *clock) join(o clock) (moved bool) {
	c.grow(len(o))
	for i, n := range o {
		if n > (*c)[i] {
			(*c)[i] = n
			moved = true
		}
	}
	return moved
}

func (c *clock) grow(n int) {
	for len(*c) < n {
		*c = append(*c, 0)
	}
}

// copyOf makes c what o is.
func (c *clock) copyOf(o clock) { *c = append((*c)[:0], o...) }
