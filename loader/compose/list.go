package compose

import (
	"math"

	"github.com/leat-go/leat/loader"
)

// list is indices of one part. They take four bytes each where that is enough.
type list struct {
	narrow []uint32
	wide   []int
}

// newList makes room for n indices below length.
func newList(length, n int) *list {
	if int64(length) <= math.MaxUint32 {
		return &list{narrow: make([]uint32, 0, n)}
	}
	return &list{wide: make([]int, 0, n)}
}

func (l *list) add(index int) {
	if l.narrow != nil {
		l.narrow = append(l.narrow, uint32(index))
	} else {
		l.wide = append(l.wide, index)
	}
}

func (l *list) get(at int) int {
	if l.narrow != nil {
		return int(l.narrow[at])
	}
	return l.wide[at]
}

func (l *list) set(at, index int) {
	if l.narrow != nil {
		l.narrow[at] = uint32(index)
	} else {
		l.wide[at] = index
	}
}

func (l *list) len() int { return len(l.narrow) + len(l.wide) }

func (l *list) hash() uint64 {
	if l.narrow != nil {
		return hashInts(l.narrow)
	}
	return hashInts(l.wide)
}

func (l *list) choose(_ *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	return 0, l.get(index), pass
}
