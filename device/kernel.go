package device

import (
	"fmt"

	"github.com/leat-go/leat/device/driver"
)

// The parts of a kernel launch. A Kernel has a Go function for the CPU device, an entry
// point of a Module's PTX for CUDA, or both. A Launch names it, its grid and its Args,
// which are appended in the order of the PTX parameters: View.In, View.Out and View.InOut
// for memory, and Args.Uint32, Args.Float32 and the like for scalars.
type (
	Kernel = driver.Kernel
	Module = driver.Module
	Launch = driver.Launch
	Args   = driver.Args
)

// RegisterModule makes m known to the devices opened from now on. Packages call it in a
// variable's initialiser, so that it precedes every Open.
func RegisterModule(m *Module) *Module { return driver.RegisterModule(m) }

// Elements is, in a kernel's Go function, the memory behind argument i as elements of
// type T. It panics if the memory is not aligned for T, as every allocation and every
// field of a batch is.
func Elements[T any](a *Args, i int) []T { return driver.Elements[T](a, i) }

// In, Out and InOut append v to a kernel's arguments as memory that it reads,
// overwrites whole, or both.
func (v View) In(a *Args)    { v.argument(a, driver.In) }
func (v View) Out(a *Args)   { v.argument(a, driver.Out) }
func (v View) InOut(a *Args) { v.argument(a, driver.InOut) }

func (v View) argument(a *Args, access driver.Access) {
	a.Memory(v.addr, v.bytes, access)
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
