package cpu

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/device/driver"
)

// CopyH2D implements driver.Device. src may be any memory; the call blocks only on
// a device whose Model says so of Pageable memory. A copy of no bytes does nothing.
func (d *Device) CopyH2D(sh driver.Stream, dst driver.Address, src []byte) error {
	const call = "CopyH2D"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	to, a, err := d.resolve(call, "the destination", dst, int64(len(src)))
	if err != nil {
		return err
	}
	return d.copy(copyH2D, s, end{to, dst, a}, hostEnd(src, d.pinned.find(src)))
}

// CopyD2H implements driver.Device. What holds for CopyH2D holds for it.
func (d *Device) CopyD2H(sh driver.Stream, dst []byte, src driver.Address) error {
	const call = "CopyD2H"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	from, a, err := d.resolve(call, "the source", src, int64(len(dst)))
	if err != nil {
		return err
	}
	return d.copy(copyD2H, s, hostEnd(dst, d.pinned.find(dst)), end{from, src, a})
}

// CopyD2D implements driver.Device. The ranges may overlap.
func (d *Device) CopyD2D(sh driver.Stream, dst, src driver.Address, bytes int64) error {
	const call = "CopyD2D"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	to, toIn, err := d.resolve(call, "the destination", dst, bytes)
	if err != nil {
		return err
	}
	from, fromIn, err := d.resolve(call, "the source", src, bytes)
	if err != nil {
		return err
	}
	return d.copy(copyD2D, s, end{to, dst, toIn}, end{from, src, fromIn})
}

// An end is one of the two ends of a copy.
type end struct {
	mem  []byte
	addr driver.Address
	in   *allocation
}

func hostEnd(mem []byte, in *allocation) end {
	return end{mem, driver.Address(start(mem)), in}
}

func (d *Device) copy(k opKind, s *stream, dst, src end) error {
	c := Call{Op: k.String(), Stream: s.name, Bytes: int64(len(dst.mem))}
	if len(dst.mem) == 0 {
		return d.trip(c)
	}
	if s.capture != nil && (k == copyH2D && !src.in.isPinned() || k == copyD2H && !dst.in.isPinned()) {
		return d.spoil(c.Op, driver.CaptureUnsupported, "the host memory is not pinned, so that the call may block, and the graph would keep its address: use AllocHost or RegisterHost", s.capture)
	}
	o := d.newOp(k, s)
	o.dst, o.src = dst.mem, src.mem
	o.to, o.from = dst.addr, src.addr
	o.used = [2]*allocation{use(dst.in), use(src.in)}
	blocks := d.model.blocks(o)
	if err := d.submit(o, c); err != nil || !blocks {
		return err
	}
	r := d.mark(s)
	defer d.unref(r)
	return d.await(context.Background(), c.Op, r)
}

// Memset implements driver.Device.
func (d *Device) Memset(sh driver.Stream, dst driver.Address, value byte, bytes int64) error {
	const call = "Memset"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	to, a, err := d.resolve(call, "the destination", dst, bytes)
	if err != nil {
		return err
	}
	c := Call{Op: call, Stream: s.name, Bytes: bytes}
	if bytes == 0 {
		return d.trip(c)
	}
	o := d.newOp(memset, s)
	o.dst, o.to, o.value = to, dst, value
	o.used[0] = use(a)
	return d.submit(o, c)
}

// HostFunc implements driver.Device. Functions of different streams run at the
// same time; one that blocks holds up its own stream alone.
func (d *Device) HostFunc(sh driver.Stream, f func()) error {
	const call = "HostFunc"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	if f == nil {
		return d.fail(call, driver.ErrInvalid, "the function is nil")
	}
	o := d.newOp(hostFunc, s)
	o.f = f
	return d.submit(o, Call{Op: call, Stream: s.name})
}

// Launch implements driver.Device. The kernel's Go function runs on an engine's
// goroutine; on a modelled device all kernels run on one goroutine, so that one
// that blocks stops the model's clock.
func (d *Device) Launch(sh driver.Stream, l *driver.Launch) error {
	const call = "Launch"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	if err := d.checkKernel(call, l.Kernel); err != nil {
		return err
	}
	x := d.newLaunching()
	x.Launch = *l
	o := d.newOp(launch, s)
	o.launch = x
	for i := range x.Args.Len() {
		arg := x.Args.Arg(i)
		if arg.Access == driver.Scalar {
			continue
		}
		mem, a, err := d.resolve(call, "an argument", driver.Address(arg.Value), arg.Bytes)
		if err != nil {
			d.release(o)
			return d.argumentError(err, l.Kernel, i)
		}
		x.Args.Resolve(i, mem)
		x.used[i] = use(a)
	}
	return d.submit(o, Call{Op: call, Stream: s.name, Kernel: l.Kernel.Name})
}

// CheckKernel implements driver.Device.
func (d *Device) CheckKernel(k *driver.Kernel) error {
	const call = "CheckKernels"
	d.mu.Lock()
	defer d.unlock()
	if err := d.endedError(call); err != nil {
		return err
	}
	return d.checkKernel(call, k)
}

func (d *Device) checkKernel(call string, k *driver.Kernel) error {
	switch {
	case k == nil:
		return d.fail(call, driver.ErrInvalid, "the kernel is nil")
	case k.Go == nil:
		return d.fail(call, driver.ErrUnsupported, fmt.Sprintf("kernel %q has no Go function, which is what a CPU device runs: set Kernel.Go", k.Name))
	}
	return nil
}

func (d *Device) argumentError(err error, k *driver.Kernel, argument int) error {
	e := err.(*driver.Error) // resolve returns no other
	e.Hint = fmt.Sprintf("argument %d of kernel %q: %s", argument, k.Name, e.Hint)
	return e
}
