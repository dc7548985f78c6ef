package gomlx

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
)

// Below this many bytes a batch, handing a tensor over costs as much as making one.
const stockFrom = 64 << 10

// A stock has tensors without values made ahead, on goroutines of its own: a backend with
// shared buffers clears the memory of each, which takes longer than to fill it. The values
// come from the consumer's goroutine, so that the pipeline's cursor is never ahead of it.
type stock struct {
	sets   chan set
	stop   chan struct{}
	makers sync.WaitGroup
	data   *Dataset
}

// A set is what one full batch needs: a tensor for each column of one shape, nil for others.
type set struct {
	tensors []*tensors.Tensor
	err     error
}

// newStock begins to make tensors for a range, or returns nil where that gains nothing.
func (d *Dataset) newStock() *stock {
	if d.fixed < stockFrom || !d.backend.HasSharedBuffers() {
		return nil
	}
	makers := max(1, min(8, runtime.GOMAXPROCS(0)/2))
	s := &stock{sets: make(chan set, makers), stop: make(chan struct{}), data: d}
	for range makers {
		s.makers.Go(s.make)
	}
	return s
}

// make is a goroutine; it ends at an error or at close.
func (s *stock) make() {
	for {
		made := s.data.emptySet()
		select {
		case s.sets <- made:
		case <-s.stop:
			made.finalize()
			return
		}
		if made.err != nil {
			return
		}
	}
}

// take returns a tensor for each of n columns, which are the caller's. Those of a batch that is
// not full, or without a stock, are nil.
func (s *stock) take(full bool, n int) ([]*tensors.Tensor, error) {
	if s == nil || !full {
		return make([]*tensors.Tensor, n, n+1), nil
	}
	made := <-s.sets
	return made.tensors, made.err
}

// close waits for the makers, and frees what nobody took.
func (s *stock) close() {
	if s == nil {
		return
	}
	close(s.stop)
	s.makers.Wait()
	close(s.sets)
	for made := range s.sets {
		made.finalize()
	}
}

// emptySet makes a set; a panic of the backend becomes its error.
func (d *Dataset) emptySet() (made set) {
	defer func() {
		if p := recover(); p != nil {
			made.finalize()
			made = set{err: fmt.Errorf("gomlx: making a tensor: %v", p)}
		}
	}()
	made.tensors = make([]*tensors.Tensor, len(d.columns), len(d.columns)+1)
	for i := range d.columns {
		c := &d.columns[i]
		if c.ragged {
			continue
		}
		t, err := tensors.FromShapeForBackend(d.backend, d.options.Device, c.full)
		if err != nil {
			made.finalize()
			return set{err: err}
		}
		made.tensors[i] = t
	}
	return made
}

func (s set) finalize() {
	for _, t := range s.tensors {
		if t != nil {
			_ = t.FinalizeAll() // one that could not be is left to the garbage collector
		}
	}
}
