package compose

import (
	"sync"

	"github.com/leat-go/leat/loader"
)

// places are what each goroutine knows of where it reads.
type places[T any] struct {
	readers loader.Local[T]
	others  sync.Pool // of *T: for those that read no sample, and have no row
}

// of lends the place of who has the row, until done.
func (p *places[T]) of(row *loader.Row) *T {
	if row != nil {
		return p.readers.Of(row)
	}
	if place, ok := p.others.Get().(*T); ok {
		return place
	}
	return new(T)
}

func (p *places[T]) done(row *loader.Row, place *T) {
	if row == nil {
		p.others.Put(place)
	}
}
