package cuda

import (
	"fmt"

	"github.com/leat-go/leat/device/driver"
)

// Alloc returns device memory. CUDA aligns it to 256 bytes at least.
func (d *gpu) Alloc(bytes int64) (driver.Address, error) {
	const op = "Alloc"
	if bytes <= 0 {
		return 0, d.invalid(op, fmt.Sprintf("%d bytes asked for", bytes))
	}
	if err := d.unguarded(op); err != nil {
		return 0, err
	}
	g, err := d.enter(op)
	if err != nil {
		return 0, err
	}
	r := g.call(d.cu.memAlloc, g.result0(), uintptr(bytes))
	if r == outOfMemory {
		err := g.refine(r, driver.ErrOutOfMemory, fmt.Sprintf("%d bytes asked for, %s: fewer or smaller buffers need less; nvidia-smi shows who else uses the GPU", bytes, g.freeMemory()))
		g.leave(success)
		return 0, err
	}
	p := driver.Address(g.handle())
	if err := g.leave(r); err != nil {
		return 0, err
	}
	return p, nil
}

func (g *group) freeMemory() string {
	if g.call(g.gpu.cu.memGetInfo, g.result0(), g.result1()) != success {
		return "and what is free is unknown"
	}
	return fmt.Sprintf("%d of %d free", g.size(0), g.size(1))
}

// Free waits for work that is running, even where that does not use p: CUDA does so.
func (d *gpu) Free(p driver.Address) error {
	const op = "Free"
	if err := d.unguarded(op); err != nil {
		return err
	}
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	return g.leave(g.call(d.cu.memFree, uintptr(p)))
}

func (d *gpu) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	const op = "CopyH2D"
	if err := d.pinnedFor(op, s, src); err != nil {
		return err
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	return g.leaveStream(s, g.call(d.cu.memcpyHtoDAsync, uintptr(dst), g.memory(src), uintptr(len(src)), uintptr(s)))
}

func (d *gpu) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	const op = "CopyD2H"
	if err := d.pinnedFor(op, s, dst); err != nil {
		return err
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	return g.leaveStream(s, g.call(d.cu.memcpyDtoHAsync, g.memory(dst), uintptr(src), uintptr(len(dst)), uintptr(s)))
}

func (d *gpu) CopyD2D(s driver.Stream, dst, src driver.Address, bytes int64) error {
	const op = "CopyD2D"
	if bytes < 0 {
		return d.invalid(op, fmt.Sprintf("%d bytes asked for", bytes))
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	return g.leaveStream(s, g.call(d.cu.memcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s)))
}

func (d *gpu) Memset(s driver.Stream, dst driver.Address, value byte, bytes int64) error {
	const op = "Memset"
	if bytes < 0 {
		return d.invalid(op, fmt.Sprintf("%d bytes asked for", bytes))
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	return g.leaveStream(s, g.call(d.cu.memsetD8Async, uintptr(dst), uintptr(value), uintptr(bytes), uintptr(s)))
}
