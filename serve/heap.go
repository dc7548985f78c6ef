package serve

// heap has the least of its entries first. Each knows its index, and so can be taken out.
// Package container/heap would have each of them in an interface.
type heap struct {
	list  []*entry
	less  func(a, b *entry) bool
	index func(*entry) *int
}

// first is the least one. The heap is not empty.
func (h *heap) first() *entry { return h.list[0] }

func (h *heap) push(e *entry) {
	h.list = append(h.list, e)
	*h.index(e) = len(h.list) - 1
	h.up(len(h.list) - 1)
}

// remove takes e out, which is in the heap.
func (h *heap) remove(e *entry) {
	i, last := *h.index(e), len(h.list)-1
	h.swap(i, last)
	h.list[last] = nil
	h.list = h.list[:last]
	if i < last && !h.down(i) {
		h.up(i)
	}
}

func (h *heap) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	*h.index(h.list[i]), *h.index(h.list[j]) = i, j
}

func (h *heap) up(i int) {
	for i > 0 {
		above := (i - 1) / 2
		if !h.less(h.list[i], h.list[above]) {
			return
		}
		h.swap(i, above)
		i = above
	}
}

// down reports whether anything moved.
func (h *heap) down(i int) (moved bool) {
	for {
		least := 2*i + 1
		if least >= len(h.list) {
			return moved
		}
		if other := least + 1; other < len(h.list) && h.less(h.list[other], h.list[least]) {
			least = other
		}
		if !h.less(h.list[least], h.list[i]) {
			return moved
		}
		h.swap(i, least)
		i, moved = least, true
	}
}
