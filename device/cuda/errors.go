package cuda

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// result is a CUresult.
type result uint32

// The results that decide something here.
const (
	success                  result = 0
	invalidValue             result = 1
	outOfMemory              result = 2
	notInitialised           result = 3
	stubLibrary              result = 34
	noDevice                 result = 100
	peerAccessUnsupported    result = 217
	operatingSystem          result = 304
	illegalState             result = 401
	notReady                 result = 600
	peerAccessAlreadyEnabled result = 704
	peerAccessNotEnabled     result = 705
	hostAlreadyRegistered    result = 712
	hostNotRegistered        result = 713
	notPermitted             result = 800
	notSupported             result = 801
	captureUnmatched         result = 903
	graphUpdateFailed        result = 910
)

// origin says whether an error belongs to the call that returned it.
type origin bool

const (
	foundEarlier origin = false // a fault that work submitted earlier had caused
	causedHere   origin = true
)

// cause is what a result means for the caller.
type cause struct {
	err  error
	hint string
}

const restart = "; nothing on this device will run again: restart the process"

const findCall = "; LEAT_SYNC=1 finds the call"

// causes are the results with a sentinel or a likely cause worth telling. Those
// with ErrFault end the context.
var causes = map[result]cause{
	invalidValue:          {driver.ErrInvalid, "an address, a size or a grid that the driver does not accept"},
	outOfMemory:           {driver.ErrOutOfMemory, ""},
	notInitialised:        {driver.ErrUnavailable, "the driver was not initialised"},
	4:                     {driver.ErrClosed, "the process is ending and the driver has shut down"},
	stubLibrary:           {driver.ErrUnavailable, "the library found is a stub to link against, not a driver"},
	46:                    {driver.ErrUnavailable, "another process has the device to itself"},
	noDevice:              {driver.ErrUnavailable, "the driver sees no GPU: is CUDA_VISIBLE_DEVICES empty, or the GPU not passed into the container?"},
	101:                   {driver.ErrUnavailable, "no device has this number"},
	102:                   {driver.ErrUnavailable, "the device has no valid licence"},
	200:                   {driver.ErrInvalid, "the module is not PTX or a GPU binary"},
	201:                   {driver.ErrInvalid, "a stream, an event or memory of another device"},
	209:                   {driver.ErrUnsupported, "the module has no code for this GPU"},
	peerAccessUnsupported: {driver.ErrUnsupported, "the GPUs have no way to each other's memory"},
	218:                   {driver.ErrInvalid, "the driver can't compile the module's PTX"},
	221:                   {driver.ErrUnsupported, "the driver's PTX compiler, libnvidia-ptxjitcompiler, is not installed"},
	222:                   {driver.ErrUnsupported, "the PTX is newer than the driver"},
	223:                   {driver.ErrUnsupported, "compiling PTX is disabled, for example by CUDA_DISABLE_PTX_JIT"},
	operatingSystem:       {nil, "the operating system refused"},
	400:                   {driver.ErrInvalid, "a stream or an event that was freed"},
	500:                   {driver.ErrInvalid, "the module has no such entry point"},
	701:                   {driver.ErrInvalid, "the block is too large for the registers or the shared memory that the kernel needs"},
	hostAlreadyRegistered: {driver.ErrInvalid, "part of the memory is pinned already"},
	hostNotRegistered:     {driver.ErrInvalid, "the memory is not pinned"},
	notPermitted:          {driver.ErrUnsupported, "the operation is not permitted here"},
	notSupported:          {driver.ErrUnsupported, "the device or the driver can't do this"},
	802:                   {driver.ErrUnavailable, "the system is not ready: is the fabric manager running?"},
	803:                   {driver.ErrUnavailable, "the driver's library and its kernel module are of different versions: reboot, or mount the library that matches"},
	804:                   {driver.ErrUnavailable, "this GPU does not support the compatibility library that was found"},
	805:                   {driver.ErrUnavailable, "the MPS server can't be reached"},
	807:                   {driver.ErrUnavailable, "the MPS server is not ready"},
	808:                   {driver.ErrUnavailable, "the MPS server has all the clients it takes"},
	900:                   {driver.CaptureUnsupported, "a graph is being captured: device.Stream.Capture says what is refused meanwhile"},
	901:                   {driver.CaptureInvalidated, "a call in the capture, or of another library on a captured stream, was refused"},
	902:                   {driver.CaptureMerge, "the event is of another capture"},
	captureUnmatched:      {driver.CaptureUnmatched, "the stream was forked off, or another library's capture began on it"},
	904:                   {driver.CaptureUnjoined, "the stream on which the capture began must wait for an event recorded behind the last work of each stream forked off"},
	905:                   {driver.CaptureIsolation, "the event was not recorded in the capture"},
	906:                   {driver.CaptureImplicit, "another library uses the default stream, and this stream was not made with CU_STREAM_NON_BLOCKING"},
	907:                   {driver.CapturedEvent, "record it again, outside"},
	908:                   {driver.CaptureWrongThread, ""},

	214: {driver.ErrFault, "the device's memory failed with an ECC error" + restart},
	220: {driver.ErrFault, "NVLink failed" + restart},
	226: {driver.ErrFault, "the device's memory failed with an ECC error that was contained" + restart},
	700: {driver.ErrFault, "a kernel or a copy used an address that isn't its own: memory freed too early, or an index out of range" + findCall + restart},
	702: {driver.ErrFault, "a kernel ran longer than the system allows" + restart},
	709: {driver.ErrFault, "the context was destroyed by somebody else" + restart},
	710: {driver.ErrFault, "an assertion in a kernel failed" + restart},
	714: {driver.ErrFault, "a kernel's stack overflowed or was corrupted" + findCall + restart},
	715: {driver.ErrFault, "a kernel met an illegal instruction" + restart},
	716: {driver.ErrFault, "a kernel loaded or stored at a misaligned address" + findCall + restart},
	717: {driver.ErrFault, "a kernel used an address of the wrong address space" + findCall + restart},
	718: {driver.ErrFault, "a kernel jumped to an invalid address" + findCall + restart},
	719: {driver.ErrFault, "a kernel failed, most often at an invalid address" + findCall + restart},
	721: {driver.ErrFault, "a kernel ended without freeing its tensor memory" + restart},
	806: {driver.ErrFault, "the MPS server failed" + restart},
	810: {driver.ErrFault, "the MPS server ended this client" + restart},
	911: {driver.ErrFault, "an external device failed" + restart},
	999: {driver.ErrFault, "the driver gives no cause" + restart},
}

// failure is r as an error of the group's operation. A fault is kept: it is what
// every later call returns.
func (g *group) failure(r result, o origin) error {
	c := causes[r]
	if c.err == nil {
		c.err = fmt.Errorf("CUDA error %d", uint32(r))
	}
	if g.name != "" {
		c.hint = strings.TrimPrefix(fmt.Sprintf("%s; on %q", c.hint, g.name), "; ")
	}
	fault := c.err == driver.ErrFault
	e := &driver.Error{
		Op: g.op, Device: g.gpu.name,
		Code: int(r), Name: g.errorName(r),
		Async: fault && o == foundEarlier,
		Hint:  c.hint, Err: c.err,
	}
	switch reason, ok := c.err.(driver.CaptureError); {
	case ok && reason == driver.CaptureInvalidated:
		if first := g.gpu.captures.first(); first != "" {
			e.Hint = first
		}
	case ok:
		g.gpu.captures.refused(e)
	}
	if fault && !g.gpu.fault.CompareAndSwap(nil, e) {
		return g.gpu.fault.Load()
	}
	return e
}

// refine is failure with what the operation knows better: its own hint, and its
// own sentinel unless r ends the device.
func (g *group) refine(r result, sentinel error, hint string) error {
	err := g.failure(r, foundEarlier)
	e, ok := err.(*driver.Error)
	if !ok || e.Err == driver.ErrFault {
		return err
	}
	e.Err, e.Hint = sentinel, hint
	return e
}

// errorName asks the driver for r's name, which needs no context.
func (g *group) errorName(r result) string {
	fn := g.gpu.cu.getErrorName
	if fn == 0 || g.call(fn, uintptr(r), g.result0()) != success {
		return ""
	}
	return cString(g.pointer())
}

// cString is the C string at p, of a sane length.
func cString(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	const limit = 256
	n := 0
	for n < limit && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// invalid is an error that the driver was not asked about.
func (d *gpu) invalid(op, hint string) error {
	return &driver.Error{Op: op, Device: d.name, Err: driver.ErrInvalid, Hint: hint}
}

func (d *gpu) unsupported(op, symbol string) error {
	return &driver.Error{Op: op, Device: d.name, Err: driver.ErrUnsupported,
		Hint: "the driver lacks " + symbol + "; a newer driver has it"}
}
