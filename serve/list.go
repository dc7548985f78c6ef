package serve

// links are the neighbours of a T in a list.
type links[T any] struct {
	prev, next *T
}

// list is a list of T's linked by links that they have, so that any of them is taken out
// in one move and none costs an allocation.
type list[T any] struct {
	first, last *T
	n           int
	links       func(*T) *links[T]
}

// insert puts x behind at, in front of all if that is nil.
func (l *list[T]) insert(x, at *T) {
	k := l.links(x)
	k.prev, k.next = at, l.first
	if at != nil {
		k.next = l.links(at).next
		l.links(at).next = x
	} else {
		l.first = x
	}
	if k.next != nil {
		l.links(k.next).prev = x
	} else {
		l.last = x
	}
	l.n++
}

// append puts x behind all.
func (l *list[T]) append(x *T) { l.insert(x, l.last) }

// remove takes x out, which is in the list.
func (l *list[T]) remove(x *T) {
	k := l.links(x)
	if k.prev != nil {
		l.links(k.prev).next = k.next
	} else {
		l.first = k.next
	}
	if k.next != nil {
		l.links(k.next).prev = k.prev
	} else {
		l.last = k.prev
	}
	*k = links[T]{}
	l.n--
}
