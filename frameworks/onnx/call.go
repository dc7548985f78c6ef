package onnx

import (
	"runtime"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/leat-go/leat/dtype"
)

// A call is what one run of a session lends to C: tensors over memory that may be Go's.
// It is pinned until end: C keeps its address, and nothing else in Go may refer to it any
// more while the session runs. A call is used again, by one goroutine at a time.
type call struct {
	values []ort.Value
	pinned runtime.Pinner
	dims   []int64
}

// tensor adds a tensor of rows of a shape over the first elements of memory.
func (c *call) tensor(t dtype.Type, rows int, shape []int, memory []byte) error {
	c.dims = append(c.dims[:0], int64(rows))
	n := t.Size() * rows
	for _, d := range shape {
		c.dims = append(c.dims, int64(d))
		n *= d
	}
	if n == 0 || n > len(memory) {
		return ErrShape
	}
	c.pinned.Pin(&memory[0])
	v, err := ort.NewCustomDataTensor(c.dims, memory[:n], types[t])
	if err != nil {
		return err
	}
	c.values = append(c.values, v)
	return nil
}

// end takes everything back from C.
func (c *call) end() {
	for _, v := range c.values {
		_ = v.Destroy() // never fails
	}
	clear(c.values)
	c.values = c.values[:0]
	c.pinned.Unpin()
}
