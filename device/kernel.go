package device

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device/driver"
)

// A Kernel is one operation of your own, in the forms that devices run:
//
//	Name   string       // in reports, and the entry point's in Module
//	Module *Module      // PTX, for GPUs; nil if there is none
//	Go     func(*Args)  // for the CPU device; nil if there is none
//
// The Go function does the whole launch, all blocks and all threads, in the stream's
// order and on one goroutine. It reads its arguments by number, memory with Elements or
// Args.Bytes and scalars with Args.Int32, Args.Float32 and so on, and must neither keep the
// memory nor call a device. A panic in it is a fault of the device, as an illegal
// address is on a GPU.
//
// Either form may be missing. Launch refuses a kernel that has no form for the device
// before anything is submitted, with ErrUnsupported; Device.CheckKernels says so when
// the program starts.
type Kernel = driver.Kernel

// A Module is PTX text with the entry points of one or more kernels:
//
//	Name string  // in errors
//	PTX  string  // most often embedded, with //go:embed
type Module = driver.Module

// A Launch is one submission of a Kernel:
//
//	Kernel      *Kernel
//	Grid, Block [3]uint32  // blocks, and threads in a block, in x, y and z
//	SharedBytes uint32     // dynamic shared memory of a block
//	Args        Args
//
// On every device Grid and Block must be what CUDA accepts, though a Go function sees
// neither: at least 1 in x, also where there is no work; in y and z, 0 means 1. A Launch is a value and holds no memory of its own: keep
// it in a variable and nothing is allocated.
type Launch = driver.Launch

// Args are a kernel's arguments, in the order of the PTX entry point's parameters. The
// zero value is empty. View.In, View.Out and View.InOut append memory, an address of 8
// bytes in PTX; AddUint32, AddInt32, AddFloat32, AddUint64 and AddInt64 append a scalar.
// There are at most 24, and Reset empties the list. The Go function reads argument i with
// Bytes, Uint32, Int32, Float32, Uint64 or Int64, or with Elements.
type Args = driver.Args

// RegisterModule makes m known to the devices opened from now on, and returns it.
// Packages call it in a variable's initialiser, so that it precedes every Open:
//
//	//go:embed scale.ptx
//	var ptx string
//
//	var module = device.RegisterModule(&device.Module{Name: "scale", PTX: ptx})
//
// A GPU compiles the module when it opens. Without RegisterModule it does so at the first
// launch, or in CheckKernels, which takes milliseconds.
func RegisterModule(m *Module) *Module { return driver.RegisterModule(m) }

// Elements is, in a kernel's Go function, the memory behind argument i as elements of
// type T. It panics if the memory is not aligned for T, as every allocation and every
// field of a batch is. What is left over at the end, less than one element, is cut off.
func Elements[T any](a *Args, i int) []T { return driver.Elements[T](a, i) }

// In, Out and InOut append v to a kernel's arguments as memory that it only reads, that
// it overwrites to the last byte without reading, or that it reads and writes. The checks
// of the device and of package order rely on that being true. A Launch with
// memory of another device, or of a buffer that was closed, is refused with ErrInvalid.
func (v View) In(a *Args)    { v.argument(a, driver.In) }
func (v View) Out(a *Args)   { v.argument(a, driver.Out) }
func (v View) InOut(a *Args) { v.argument(a, driver.InOut) }

func (v View) argument(a *Args, access driver.Access) {
	a.AddMemory(v.addr, v.bytes, access)
	if v.bytes == 0 {
		return
	}
	err := v.usable("Launch", v.dev)
	if owner, _, _ := a.Owner(); err == nil && owner != nil && owner != any(v.dev) {
		before := owner.(*Device)
		err = v.dev.invalid("Launch", fmt.Sprintf("the memory belongs to %s, that of the arguments before it to %s", v.dev.seenFrom(before), before.name))
	}
	a.OwnedBy(v.dev, err)
}

// CheckKernels reports all of the kernels that d can't run in one error, in which
// errors.Is finds ErrUnsupported if a kernel has no form for this kind of device. Call it
// when the program starts, before the first batch: a kernel that has only a Go function
// does not run on a GPU, and is not run on the host in its place.
func (d *Device) CheckKernels(kernels ...*Kernel) error {
	errs := make([]error, len(kernels))
	for i, k := range kernels {
		if k == nil {
			errs[i] = d.invalid("CheckKernels", fmt.Sprintf("kernel %d is nil", i))
			continue
		}
		errs[i] = d.drv.CheckKernel(k)
	}
	return errors.Join(errs...)
}
