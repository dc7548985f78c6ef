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
func (v View) In(a *Args)    { a.Memory(v.addr, v.bytes, driver.In) }
func (v View) Out(a *Args)   { a.Memory(v.addr, v.bytes, driver.Out) }
func (v View) InOut(a *Args) { a.Memory(v.addr, v.bytes, driver.InOut) }
