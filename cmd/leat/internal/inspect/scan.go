package inspect

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/leat-go/leat/loader"
)

// A Problem is a sample that can't be read.
type Problem struct {
	Index  int
	Origin loader.Origin
	Err    error
}

// mostProblems is how many are kept; the others are counted.
const mostProblems = 20

// A Scan is what a reading of many samples has found.
type Scan struct {
	Samples    int64 // that were read
	Fields     []FieldStatistics
	Problems   []Problem // the first of them
	Unreadable int64     // all of them
}

func (s *Scan) failed(p Problem) {
	s.Unreadable++
	if len(s.Problems) < mostProblems {
		s.Problems = append(s.Problems, p)
	}
}

// block is how many samples are counted together. Blocks are added in their order, so that the
// sums are the same for any number of goroutines.
const block = 256

// scan reads n samples of the data, which are as far from each other as they can be.
func scan(ctx context.Context, data loader.Dataset, fields []loader.Field, n int) (*Scan, error) {
	all := &Scan{Fields: newStatistics(fields)}
	length, step := data.Len(), 1
	if n > 0 && n < length {
		step = length / n
		length = n
	}
	workers := runtime.GOMAXPROCS(0)
	readers := make([]*reader, workers)
	for i := range readers {
		var err error
		if readers[i], err = newReader(data, fields); err != nil {
			return nil, err
		}
	}
	for from := 0; from < length; from += workers * block {
		parts := make([]*Scan, workers)
		g, ctx := errgroup.WithContext(ctx)
		for i := range workers {
			g.Go(func() error {
				parts[i] = readers[i].block(ctx, from+i*block, min(from+(i+1)*block, length), step)
				return context.Cause(ctx)
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for _, part := range parts {
			all.merge(part)
		}
	}
	return all, nil
}

// block reads every sample of a block.
func (r *reader) block(ctx context.Context, from, to, step int) *Scan {
	s := &Scan{Fields: newStatistics(r.fields)}
	for i := from; i < to && ctx.Err() == nil; i++ {
		index := i * step
		if err := r.read(ctx, index); err != nil {
			s.failed(Problem{Index: index, Origin: origin(r.data, index), Err: err})
			continue
		}
		s.Samples++
		for k := range s.Fields {
			s.Fields[k].add(r)
		}
	}
	return s
}

func (s *Scan) merge(o *Scan) {
	s.Samples += o.Samples
	for _, p := range o.Problems {
		s.failed(p)
	}
	s.Unreadable += o.Unreadable - int64(len(o.Problems))
	for i := range s.Fields {
		s.Fields[i].merge(o.Fields[i])
	}
}

func origin(data loader.Dataset, index int) loader.Origin {
	if l, ok := data.(loader.Locator); ok {
		return l.Origin(index)
	}
	return loader.Origin{}
}
