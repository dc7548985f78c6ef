package tensors

import (
	"slices"
	"sync"

	"gorgonia.org/tensor"

	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/prefetch"
)

// A Cache makes tensors of a pipeline's batches without an allocation once it has seen
// every slot: batches come in the same few slots again and again, and so do the tensors
// over them. The zero value is ready to use. Make one for each Prefetcher, because it
// keeps the slots that it has seen from the garbage collector. Several goroutines may
// use it.
type Cache struct {
	mu      sync.Mutex
	headers map[*byte]*kept // by where the field's memory begins
}

// kept is a header, with the shape that it was given for its latest batch.
type kept struct {
	*tensor.Dense
	given []int
}

// Of is the function [Of], with headers that are used again. A tensor is as its field
// says each time, whatever was done to the one of an earlier batch: one that was
// transposed, reshaped, sliced or masked is left alone and replaced.
func (c *Cache) Of(f prefetch.Field) (*tensor.Dense, error) {
	e, err := check(f)
	if err != nil {
		return nil, err
	}
	if invariants.Enabled {
		return header(e, f), nil // each batch is in memory of its own, which never comes again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := &f.Bytes[0]
	if k := c.headers[at]; k != nil && k.usable(e, f) {
		k.give(f)
		return k.Dense, nil
	}
	if c.headers == nil {
		c.headers = map[*byte]*kept{}
	}
	k := &kept{header(e, f), slices.Clone(f.Shape)}
	c.headers[at] = k
	return k.Dense, nil
}

// give makes the header that of another batch: of other rows, or longer ones of a ragged
// field.
func (k *kept) give(f prefetch.Field) {
	if slices.Equal(k.given, f.Shape) {
		return
	}
	copy(k.given, f.Shape)
	copy(k.Shape(), f.Shape)
	stride := 1
	for i := len(f.Shape) - 1; i >= 0; i-- {
		k.Strides()[i] = stride
		stride *= f.Shape[i]
	}
	k.Raw = f.Bytes
}

// usable reports whether a header is as it was given for a batch of f, of any length:
// row-major, whole and over f's memory.
func (k *kept) usable(e element, f prefetch.Field) bool {
	d, shape, strides := k.Dense, k.Shape(), k.Strides()
	if len(shape) != len(f.Shape) || len(strides) != len(shape) || !slices.Equal(shape, k.given) {
		return false
	}
	// Materializable is what was transposed, or sliced from another.
	if d.Dtype() != e.tensor || !d.C() || d.IsMaterializable() || len(d.Mask()) > 0 {
		return false
	}
	if len(d.Raw) == 0 || &d.Raw[0] != &f.Bytes[0] {
		return false
	}
	stride := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if strides[i] != stride {
			return false
		}
		stride *= shape[i]
	}
	return stride*f.DType.Size() == len(d.Raw)
}
