package order_test

import (
	"context"
	"math/bits"
	"time"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// A fake is a driver that does no work at all. It gives out addresses that were freed
// again at once, as CUDA does, and answers what it is told to answer.
type fake struct {
	index   int
	handles *uintptr // of all fakes
	spaces  map[int64][]driver.Address
	sizes   map[driver.Address]int64
	next    driver.Address

	oneHandle bool   // an adopted stream has its native handle, as CUDA's have
	done      bool   // what EventDone and StreamDone answer
	funcs     func() // the last HostFunc's
}

func newFake(index int, handles *uintptr) *fake {
	return &fake{index: index, handles: handles, next: 1<<(bits.UintSize-2) + driver.Address(index)<<24, spaces: map[int64][]driver.Address{},
		sizes: map[driver.Address]int64{}}
}

func (f *fake) handle() uintptr { *f.handles++; return *f.handles }

func (f *fake) Properties() driver.Properties          { return driver.Properties{Kind: "fake", Index: f.index} }
func (f *fake) Memory() (free, total int64, err error) { return 0, 0, nil }
func (f *fake) Synchronize(context.Context) error      { return nil }
func (f *fake) Close() error                           { return nil }

func (f *fake) NewStream(driver.StreamConfig) (driver.Stream, error) {
	return driver.Stream(f.handle()), nil
}
func (f *fake) AdoptStream(native uintptr) (driver.Stream, error) {
	if f.oneHandle {
		return driver.Stream(native), nil
	}
	return driver.Stream(f.handle()), nil
}
func (f *fake) FreeStream(driver.Stream) error                         { return nil }
func (f *fake) StreamDone(driver.Stream) (bool, error)                 { return f.done, nil }
func (f *fake) SynchronizeStream(context.Context, driver.Stream) error { return nil }
func (f *fake) NewEvent(driver.EventConfig) (driver.Event, error) {
	return driver.Event(f.handle()), nil
}
func (f *fake) FreeEvent(driver.Event) error                                    { return nil }
func (f *fake) Record(driver.Event, driver.Stream) error                        { return nil }
func (f *fake) Wait(driver.Stream, driver.Event) error                          { return nil }
func (f *fake) EventDone(driver.Event) (bool, error)                            { return f.done, nil }
func (f *fake) SynchronizeEvent(context.Context, driver.Event) error            { return nil }
func (f *fake) Elapsed(driver.Event, driver.Event) (time.Duration, error)       { return 0, nil }
func (f *fake) PeerOf(other driver.Device) bool                                 { _, ok := driver.Unwrap(other).(*fake); return ok }
func (f *fake) WaitPeer(driver.Stream, driver.Device, driver.Event) error       { return nil }
func (f *fake) CopyPeer(driver.Stream, driver.Place, driver.Place, int64) error { return nil }

func (f *fake) Alloc(bytes int64) (driver.Address, error) {
	if free := f.spaces[bytes]; len(free) > 0 {
		p := free[len(free)-1]
		f.spaces[bytes] = free[:len(free)-1]
		return p, nil
	}
	p := f.next
	f.next += driver.Address(bytes+255) &^ 255
	f.sizes[p] = bytes
	return p, nil
}

func (f *fake) Free(p driver.Address) error {
	f.spaces[f.sizes[p]] = append(f.spaces[f.sizes[p]], p)
	return nil
}

func (f *fake) AllocHost(bytes int64, _ driver.HostConfig) ([]byte, error) {
	return make([]byte, bytes), nil
}
func (f *fake) FreeHost([]byte) error                        { return nil }
func (f *fake) RegisterHost([]byte, driver.HostConfig) error { return nil }
func (f *fake) UnregisterHost([]byte) error                  { return nil }

// HostAddress is elsewhere than the host's own, as on some machines.
func (f *fake) HostAddress(mem []byte) (driver.Address, error) {
	return driver.Address(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) + 1<<(bits.UintSize-3), nil
}

func (f *fake) CopyH2D(driver.Stream, driver.Address, []byte) error         { return nil }
func (f *fake) CopyD2H(driver.Stream, []byte, driver.Address) error         { return nil }
func (f *fake) CopyD2D(_ driver.Stream, _, _ driver.Address, _ int64) error { return nil }
func (f *fake) Memset(driver.Stream, driver.Address, byte, int64) error     { return nil }
func (f *fake) HostFunc(_ driver.Stream, fn func()) error                   { f.funcs = fn; return nil }
func (f *fake) Launch(driver.Stream, *driver.Launch) error                  { return nil }
func (f *fake) CheckKernel(*driver.Kernel) error                            { return nil }
