package compose

import (
	"context"
	"sync"

	"github.com/leat-go/leat/loader"
)

// scratches lends memory for samples of a part, to each reader its own. Who does not come
// back, because a sample panicked, keeps it.
type scratches struct {
	fields []loader.Field
	pool   sync.Pool
}

// get lends a Scratch until put.
func (s *scratches) get() (*loader.Scratch, error) {
	if scratch, ok := s.pool.Get().(*loader.Scratch); ok {
		return scratch, nil
	}
	return loader.NewScratch(s.fields)
}

func (s *scratches) put(scratch *loader.Scratch) { s.pool.Put(scratch) }

// readTo reads a sample of the part into scratch memory, for the row above it.
func (p *part) readTo(ctx context.Context, s *loader.Scratch, pass uint64, index int, row *loader.Row) (*loader.Row, error) {
	inner := s.Begin(row)
	if err := p.read(ctx, pass, index, inner); err != nil {
		return nil, err
	}
	return inner, s.Written()
}

// single is the part of a composition that has one, and its samples at their indices.
type single struct{ part [1]part }

func (s *single) Len() int                { return s.part[0].length }
func (s *single) Parts() []loader.Dataset { return datasets(s.part[:]) }
func (s *single) varies() bool            { return vary(s.part[:]) }

// Part is that of loader.Composed.
func (s *single) Part(pass uint64, index int) (part, at int, partPass uint64) { return 0, index, pass }
