package loader

// Local is memory for what reads samples: a Dataset's Read, an encode function, a function
// of a compose.Map. It is called by several goroutines at once, and each Row has a T of its
// own. A worker has the same Row for all of its samples, so what is costly to make is made once
// a worker, and what was worked out for one sample is at hand for the next. The zero value
// is ready to use; a Local must not be copied.
//
//	var decoders loader.Local[decoder]
//	…
//	d := decoders.Of(row) // lent with the row
//
// What a sample is must not depend on what the memory holds: which samples a worker reads is
// a matter of time.
type Local[T any] struct {
	_ byte // so that no two have one address
}

// local is the memory that a Row has for a Local.
type local[T any] struct {
	of     *Local[T]
	memory T
}

// locals are those of a Row, each a *local.
type locals struct {
	all    []any
	next   int         // the one that is looked at first: the one behind the last found
	places map[any]int // by the Local
}

// Of lends the memory that goes with a Row: the zero T the first time, and then what it was
// left as. It is for the goroutine that has the Row.
func (l *Local[T]) Of(r *Row) *T {
	if r.locals.next < len(r.locals.all) {
		if m, ok := r.locals.all[r.locals.next].(*local[T]); ok && m.of == l {
			r.locals.advance()
			return &m.memory
		}
	}
	return l.search(&r.locals)
}

// search is Of for memory that is not the one behind the last, or not there yet.
func (l *Local[T]) search(in *locals) *T {
	at, ok := in.places[l]
	if !ok {
		if in.places == nil {
			in.places = make(map[any]int)
		}
		at = len(in.all)
		in.places[l] = at
		in.all = append(in.all, &local[T]{of: l})
	}
	in.next = at
	in.advance()
	return &in.all[at].(*local[T]).memory
}

// advance goes on: those of a sample are mostly asked for in one order.
func (in *locals) advance() {
	if in.next++; in.next == len(in.all) {
		in.next = 0
	}
}
