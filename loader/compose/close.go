package compose

import (
	"errors"
	"io"
	"reflect"
	"runtime/debug"

	"github.com/leat-go/leat/loader"
)

// Close closes datasets with all that they are made of: each that is an io.Closer, once,
// although it may be part of several. What is made of others is closed before them. All
// are closed whatever becomes of one; the error joins theirs, and a panic is a
// *loader.PanicError in it. It is for who has opened everything below, as a function does
// that opens files and returns them as one dataset. Close the loaders' runs first.
func Close(datasets ...loader.Dataset) error {
	c := closer{seen: make(map[loader.Dataset]bool)}
	for _, ds := range datasets {
		c.visit(ds)
	}
	var errs []error
	for i := len(c.order) - 1; i >= 0; i-- {
		errs = append(errs, closeOne(c.order[i]))
	}
	return errors.Join(errs...)
}

// closer puts datasets in order: parts before what is made of them.
type closer struct {
	seen  map[loader.Dataset]bool
	order []io.Closer
}

func (c *closer) visit(ds loader.Dataset) {
	if ds == nil {
		return
	}
	// Two values that can't be compared are not one dataset.
	if reflect.TypeOf(ds).Comparable() {
		if c.seen[ds] {
			return
		}
		c.seen[ds] = true
	}
	if composed, ok := ds.(loader.Composed); ok {
		for _, part := range composed.Parts() {
			c.visit(part)
		}
	}
	if closes, ok := ds.(io.Closer); ok {
		c.order = append(c.order, closes)
	}
}

func closeOne(c io.Closer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &loader.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return c.Close()
}
