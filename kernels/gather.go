package kernels

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// GatherParams says what Gather does.
type GatherParams struct {
	// RowBytes is the length of a row, at least 1.
	RowBytes int64
	// Index is the indices' element type: Int32 or Int64.
	Index dtype.Type
	// Blocks is how many thread blocks of 512 share the work on a GPU. 0 means 8,
	// which leaves nearly all of the chip to others and is as fast as the bus when
	// the table is in host memory; use more for a table in device memory.
	Blocks int
}

// Gather copies row index[i] of table to row i of out. table is device memory, or
// pinned host memory by its HostBuffer's View, out of which the device then reads
// no more than the rows it needs. A row whose index is negative or past the
// table's end becomes zero.
func Gather(s *device.Stream, out, table, index device.View, p GatherParams) error {
	n, err := p.check(s, out, table, index)
	if err != nil || n == 0 {
		return err
	}
	l := device.Launch{Kernel: gatherInt32}
	if p.Index == dtype.Int64 {
		l.Kernel = gatherInt64
	}
	blocks := p.Blocks
	if blocks == 0 {
		blocks = 8
	}
	l.Grid, l.Block = [3]uint32{uint32(blocks), 1, 1}, [3]uint32{512, 1, 1}
	out.Out(&l.Args)
	table.In(&l.Args)
	index.In(&l.Args)
	l.Args.AddInt64(n)
	l.Args.AddInt64(p.RowBytes)
	l.Args.AddInt64(table.Size() / p.RowBytes)
	return s.Launch(&l)
}

// Validate reports every mistake in p itself, before there is memory to work on.
func (p *GatherParams) Validate() error { return p.mistakes().err("Gather") }

func (p *GatherParams) mistakes() (m mistakes) {
	if p.Index != dtype.Int32 && p.Index != dtype.Int64 {
		m.add("Index", p.Index, "int32 or int64")
	}
	if p.RowBytes < 1 {
		m.add("RowBytes", p.RowBytes, "1 or more")
	}
	if p.Blocks < 0 || p.Blocks > 1<<16 {
		m.add("Blocks", p.Blocks, "0 to 65536")
	}
	return m
}

func (p *GatherParams) check(s *device.Stream, out, table, index device.View) (n int64, err error) {
	m := p.mistakes()
	if len(m) > 0 {
		return 0, m.err("Gather")
	}
	size := int64(p.Index.Size())
	m.whole("index", index, size)
	m.whole("table", table, p.RowBytes)
	n = index.Size() / size
	m.length("out", out, n, p.RowBytes, "RowBytes")
	m.apart("out", out, "table", table)
	m.apart("out", out, "index", index)
	m.view(s, "out", out, 1)
	m.view(s, "table", table, 1)
	m.view(s, "index", index, int(size))
	return n, m.err("Gather")
}

var (
	gatherInt32 = &device.Kernel{Name: "gather_i32", Module: module, Go: gather[int32]}
	gatherInt64 = &device.Kernel{Name: "gather_i64", Module: module, Go: gather[int64]}
)

func gather[I int32 | int64](a *device.Args) {
	out, table, row, count := a.Bytes(0), a.Bytes(1), int(a.Int64(4)), uint64(a.Int64(5))
	for i, index := range device.Elements[I](a, 2) {
		to := out[i*row:][:row]
		if uint64(index) < count {
			copy(to, table[int(index)*row:])
		} else {
			clear(to)
		}
	}
}
