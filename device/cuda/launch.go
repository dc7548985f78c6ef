package cuda

import (
	"fmt"

	"github.com/leat-go/leat/device/driver"
)

// Launch submits a kernel. A grid's or a block's second and third dimension may be
// left 0, which means 1.
func (d *gpu) Launch(s driver.Stream, l *driver.Launch) error {
	const op = "Launch"
	if err := d.refused(op); err != nil {
		return err
	}
	fn, err := d.function(op, l.Kernel)
	if err != nil {
		return err
	}
	if err := d.checkLaunch(l, fn); err != nil {
		return err
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	for i := range l.Args.Len() {
		g.values[i] = l.Args.Arg(i).Value
	}
	r := g.call(d.cu.launchKernel, fn.handle,
		dimension(l.Grid[0]), dimension(l.Grid[1]), dimension(l.Grid[2]),
		dimension(l.Block[0]), dimension(l.Block[1]), dimension(l.Block[2]),
		uintptr(l.SharedBytes), uintptr(s), g.paramList(), 0)
	return g.leaveStream(s, r)
}

// CheckKernel also loads a module that was registered after Open.
func (d *gpu) CheckKernel(k *driver.Kernel) error {
	const op = "CheckKernels"
	if err := d.refused(op); err != nil {
		return err
	}
	_, err := d.function(op, k)
	return err
}

func dimension(n uint32) uintptr { return uintptr(max(n, 1)) }

// checkLaunch compares the arguments with the PTX: the driver, given too few, reads
// whatever lies behind them.
func (d *gpu) checkLaunch(l *driver.Launch, fn function) error {
	const op = "Launch"
	if l.Grid[0] == 0 || l.Block[0] == 0 {
		return d.invalid(op, fmt.Sprintf("kernel %q: the grid is %v and the block %v, want at least one of each", l.Kernel.Name, l.Grid, l.Block))
	}
	if l.Args.Len() != len(fn.params) {
		return d.invalid(op, fmt.Sprintf("kernel %q takes %d arguments, not %d", l.Kernel.Name, len(fn.params), l.Args.Len()))
	}
	for i, size := range fn.params {
		if got := l.Args.Arg(i).Size; size != 0 && size != got {
			return d.invalid(op, fmt.Sprintf("kernel %q: argument %d has %d bytes, want %d", l.Kernel.Name, i, got, size))
		}
	}
	return nil
}

// function is k's entry point: the one found before, else one looked up now. A
// module registered after Open is loaded here, which takes milliseconds.
func (d *gpu) function(op string, k *driver.Kernel) (function, error) {
	d.kernels.mu.RLock()
	fn, ok := d.kernels.functions[k]
	d.kernels.mu.RUnlock()
	if ok {
		return fn, nil
	}
	switch {
	case k == nil:
		return function{}, d.invalid(op, "the kernel is nil")
	case k.Module == nil:
		return function{}, d.noPTX(op, k)
	}
	d.kernels.mu.Lock()
	defer d.kernels.mu.Unlock()
	m := d.kernels.modules[k.Module]
	if m == nil {
		var err error
		if m, err = d.loadLate(op, k.Module); err != nil {
			return function{}, err
		}
	}
	fn, ok = m.entries[k.Name]
	if !ok {
		return function{}, d.invalid(op, fmt.Sprintf("module %q has no entry point %q, which is the kernel's name: is it extern \"C\" and __global__ in the source?", k.Module.Name, k.Name))
	}
	d.kernels.functions[k] = fn
	return fn, nil
}

func (d *gpu) loadLate(op string, m *driver.Module) (*module, error) {
	g, err := d.enter(op)
	if err != nil {
		return nil, err
	}
	loaded, err := g.loadModule(m)
	if left := g.leave(success); err == nil {
		err = left
	}
	if err != nil {
		return nil, err
	}
	d.note(fmt.Sprintf("module %q was registered after the device was opened, and loaded at its first use", m.Name))
	return loaded, nil
}

// noPTX is the error of a kernel that has no form for a GPU.
func (d *gpu) noPTX(op string, k *driver.Kernel) error {
	hint := fmt.Sprintf("kernel %q has no PTX, and a GPU runs nothing else: set Kernel.Module to one made by RegisterModule", k.Name)
	if k.Go != nil {
		hint += ", or open the CPU device, which runs its Go function"
	}
	return &driver.Error{Op: op, Device: d.name, Err: driver.ErrUnsupported, Hint: hint}
}
