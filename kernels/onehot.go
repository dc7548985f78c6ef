package kernels

import (
	"math"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// OneHotParams says what OneHot does.
type OneHotParams struct {
	// Labels is the labels' element type: Uint8, Int32 or Int64.
	Labels dtype.Type
	// Classes is the length of a row, at least 1.
	Classes int
}

// OneHot writes each label as a row of out, float32 of shape [labels, Classes]: 1
// in the label's column, 0 elsewhere. A label that is negative or not below
// Classes gives a row of zeros, which adds nothing to a cross-entropy: -1 and -100 are
// often used to say that there is no label.
func OneHot(s *device.Stream, out, labels device.View, p OneHotParams) error {
	kernel, err := p.check(s, out, labels)
	if err != nil {
		return err
	}
	if out.Size() == 0 {
		return nil
	}
	l := device.Launch{Kernel: kernel}
	grid(&l, out.Size()/4)
	out.Out(&l.Args)
	labels.In(&l.Args)
	l.Args.AddInt64(out.Size() / 4)
	l.Args.AddUint32(uint32(p.Classes))
	return s.Launch(&l)
}

// Validate reports every mistake in p itself, before there is memory to work on.
func (p *OneHotParams) Validate() error { return p.mistakes().err("OneHot") }

func (p *OneHotParams) mistakes() (m mistakes) {
	if p.kernel() == nil {
		m.add("Labels", p.Labels, "uint8, int32 or int64")
	}
	if p.Classes < 1 || p.Classes > math.MaxInt32 {
		m.add("Classes", p.Classes, "1 to 2^31-1")
	}
	return m
}

// kernel is nil for labels of a type that has none.
func (p *OneHotParams) kernel() *device.Kernel {
	switch p.Labels {
	case dtype.Uint8:
		return oneHotUint8
	case dtype.Int32:
		return oneHotInt32
	case dtype.Int64:
		return oneHotInt64
	}
	return nil
}

func (p *OneHotParams) check(s *device.Stream, out, labels device.View) (*device.Kernel, error) {
	m := p.mistakes()
	kernel := p.kernel()
	if len(m) == 0 {
		size := int64(p.Labels.Size())
		m.whole("labels", labels, size)
		m.view(s, "labels", labels, int(size))
		m.length("out", out, labels.Size()/size, int64(p.Classes)*4, "4·Classes")
		m.apart("out", out, "labels", labels)
	}
	m.view(s, "out", out, 4)
	return kernel, m.err("OneHot")
}

var (
	oneHotUint8 = &device.Kernel{Name: "one_hot_u8", Module: module, Go: oneHot[uint8]}
	oneHotInt32 = &device.Kernel{Name: "one_hot_i32", Module: module, Go: oneHot[int32]}
	oneHotInt64 = &device.Kernel{Name: "one_hot_i64", Module: module, Go: oneHot[int64]}
)

func oneHot[L uint8 | int32 | int64](a *device.Args) {
	out, classes := device.Elements[float32](a, 0), int(a.Uint32(3))
	clear(out)
	for i, label := range device.Elements[L](a, 1) {
		if uint64(label) < uint64(classes) {
			out[i*classes+int(label)] = 1
		}
	}
}
