package driver

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// A Module is PTX text with the entry points of one or more kernels. A CUDA
// device loads every registered module when it opens.
type Module struct {
	Name string
	PTX  string
}

var modules struct {
	sync.Mutex
	list []*Module
}

// RegisterModule makes m known to the devices opened from now on. Packages call
// it in a variable's initialiser, so that it precedes every Open.
func RegisterModule(m *Module) *Module {
	modules.Lock()
	defer modules.Unlock()
	modules.list = append(modules.list, m)
	return m
}

// Modules returns the registered modules in order of registration.
func Modules() []*Module {
	modules.Lock()
	defer modules.Unlock()
	return append([]*Module(nil), modules.list...)
}

// A Kernel is one operation in the forms that drivers run: a Go function for the
// CPU device and an entry point of a PTX module for CUDA. Either may be missing;
// launching it on a device of the other kind is then an error.
type Kernel struct {
	// Name is the kernel's name in reports and its entry point in Module.
	Name   string
	Module *Module
	// Go does the whole launch: all blocks, all threads.
	Go func(*Args)
}

// A Launch is one submission of a kernel.
type Launch struct {
	Kernel      *Kernel
	Grid, Block [3]uint32 // Go kernels ignore both
	SharedBytes uint32
	Args        Args
}

// MaxArgs is how many arguments a kernel takes at most.
const MaxArgs = 24

// Access says what a kernel does with the memory behind an argument.
type Access uint8

// The kinds of access. A kernel that is to be checked against an adversary says
// truthfully which memory it reads and which it overwrites.
const (
	Scalar Access = iota // not memory
	In                   // read only
	Out                  // every byte overwritten, nothing read
	InOut                // both
)

// Arg is one argument: a 4- or 8-byte scalar, or a range of device memory.
type Arg struct {
	Access Access
	// Size is the size of the PTX parameter in bytes: 4 or 8.
	Size uint8
	// Value is the scalar's bits, or the address.
	Value uint64
	// Bytes is the length of the range behind an address.
	Bytes int64
	mem   []byte
}

// Args is a kernel's list of arguments, in the order of its PTX parameters. The
// zero value is empty. It is a value: nothing is allocated to fill it.
type Args struct {
	n     int
	args  [MaxArgs]Arg
	owner any   // of the memory; nil where nobody has said
	err   error // why argument bad can't be used
	bad   int
}

func (a *Args) add(x Arg) {
	if a.n == MaxArgs {
		panic(fmt.Sprintf("driver: more than %d kernel arguments", MaxArgs))
	}
	a.args[a.n] = x
	a.n++
}

// Reset empties the list.
func (a *Args) Reset() { *a = Args{} }

// Len is the number of arguments.
func (a *Args) Len() int { return a.n }

// Arg returns argument i for a driver to read or to resolve. It panics if there is none.
func (a *Args) Arg(i int) *Arg {
	if uint(i) >= uint(a.n) {
		a.missing(i)
	}
	return &a.args[i]
}

func (a *Args) missing(i int) {
	panic(fmt.Sprintf("the kernel asks for argument %d, the launch has %d", i, a.n))
}

// AddMemory appends a range of device memory.
func (a *Args) AddMemory(p Address, bytes int64, access Access) {
	a.add(Arg{Access: access, Size: 8, Value: uint64(p), Bytes: bytes})
}

// OwnedBy says whose the memory appended last is, and why it can't be used, nil if it
// can. Package device does so and refuses a launch with other devices' memory; drivers
// have no use for it.
func (a *Args) OwnedBy(owner any, err error) {
	if err != nil && a.err == nil {
		a.err, a.bad = err, a.n-1
	}
	a.owner = owner
}

// Owner is whose the memory is, nil if OwnedBy was never called. With an error,
// argument bad is the first that can't be used.
func (a *Args) Owner() (owner any, bad int, err error) { return a.owner, a.bad, a.err }

// AddUint32, AddInt32, AddFloat32, AddUint64 and AddInt64 append a scalar.
func (a *Args) AddUint32(v uint32)   { a.add(Arg{Size: 4, Value: uint64(v)}) }
func (a *Args) AddInt32(v int32)     { a.add(Arg{Size: 4, Value: uint64(uint32(v))}) }
func (a *Args) AddFloat32(v float32) { a.add(Arg{Size: 4, Value: uint64(math.Float32bits(v))}) }
func (a *Args) AddUint64(v uint64)   { a.add(Arg{Size: 8, Value: v}) }
func (a *Args) AddInt64(v int64)     { a.add(Arg{Size: 8, Value: uint64(v)}) }

// Resolve gives the memory behind argument i to the kernel's Go function; the CPU
// device calls it before it runs the kernel.
func (a *Args) Resolve(i int, mem []byte) { a.Arg(i).mem = mem }

// The getters are for a kernel's Go function. Argument numbers are those of the
// PTX parameters.

// Bytes is the memory behind argument i.
func (a *Args) Bytes(i int) []byte { return a.Arg(i).mem }

// Uint32, Int32, Float32, Uint64 and Int64 are the scalar in argument i.
func (a *Args) Uint32(i int) uint32   { return uint32(a.Arg(i).Value) }
func (a *Args) Int32(i int) int32     { return int32(uint32(a.Arg(i).Value)) }
func (a *Args) Float32(i int) float32 { return math.Float32frombits(uint32(a.Arg(i).Value)) }
func (a *Args) Uint64(i int) uint64   { return a.Arg(i).Value }
func (a *Args) Int64(i int) int64     { return int64(a.Arg(i).Value) }

// Elements is the memory behind argument i as elements of type T. The memory must
// be aligned for T, as every allocation and every field of a batch is.
func Elements[T any](a *Args, i int) []T {
	mem := a.Arg(i).mem
	var t T
	size := int(unsafe.Sizeof(t))
	if len(mem) == 0 || size == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)%unsafe.Alignof(t) != 0 {
		panic(fmt.Sprintf("driver: argument %d is not aligned for %T", i, t))
	}
	return unsafe.Slice((*T)(p), len(mem)/size)
}
