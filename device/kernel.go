package device

import "github.com/leat-go/leat/device/driver"

// The parts of a kernel launch; see package driver.
type (
	Kernel = driver.Kernel
	Module = driver.Module
	Launch = driver.Launch
	Args   = driver.Args
)

// In, Out and InOut append v to a kernel's arguments as memory that it reads,
// overwrites whole, or both.
func (v View) In(a *Args)    { v.argument(a, driver.In) }
func (v View) Out(a *Args)   { v.argument(a, driver.Out) }
func (v View) InOut(a *Args) { v.argument(a, driver.InOut) }

func (v View) argument(a *Args, access driver.Access) {
	a.Memory(v.addr, v.bytes, access)
	if v.bytes != 0 {
		a.OwnedBy(v.dev, v.usable("Launch", v.dev))
	}
}
