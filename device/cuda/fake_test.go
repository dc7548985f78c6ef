//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fakeContext is the handle of the first fake device's primary context; that of the
// next is fakeContextStep more.
const (
	fakeContext     = 0xc0000
	fakeContextStep = 0x100
)

// A call is what the fake driver saw.
type call struct {
	name    string
	args    [maxArgs]uintptr
	context uintptr // current on the calling thread
}

// A fake is a CUDA driver of Go callbacks: it records calls, keeps a stack of
// contexts for each OS thread, and does as much as the tests need.
type fake struct {
	t *testing.T

	mu       sync.Mutex
	calls    []call
	contexts map[int][]uintptr                 // by thread
	results  map[string]result                 // what a function returns, once
	on       map[string]func([]uintptr) result // what a function does instead
	handles  uintptr                           // the last one given out
	names    map[result][]byte                 // C strings
	foreign  map[uintptr]uintptr               // contexts of streams made elsewhere
}

// Callbacks are never freed, so there is one set of them for the process, and one
// fake at a time.
var (
	fakeNow     atomic.Pointer[fake]
	fakeSymbols = sync.OnceValue(func() *symbols {
		s := new(symbols)
		for _, sym := range s.table() {
			*sym.address = purego.NewCallback(func(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 uintptr) uintptr {
				return uintptr(fakeNow.Load().called(sym.name, [maxArgs]uintptr{a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10}))
			})
		}
		return s
	})
)

func newFake(t *testing.T) (*fake, *symbols) {
	f := &fake{
		t: t, handles: 0x1000,
		contexts: make(map[int][]uintptr),
		results:  make(map[string]result),
		on:       make(map[string]func([]uintptr) result),
		names:    map[result][]byte{invalidValue: []byte("CUDA_ERROR_INVALID_VALUE\x00"), 700: []byte("CUDA_ERROR_ILLEGAL_ADDRESS\x00")},
		foreign:  make(map[uintptr]uintptr),
	}
	fakeNow.Store(f)
	s := *fakeSymbols()
	return f, &s
}

// openFake opens a device over a fake, and checks when the test ends that no
// thread was left with a context.
func openFake(t *testing.T, o Options) (*fake, *gpu) {
	f, s := newFake(t)
	d, err := open(s, o, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		f.requireNoContext()
	})
	return f, d
}

func (f *fake) requireNoContext() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for thread, stack := range f.contexts {
		require.Empty(f.t, stack, "thread %d was left with a context", thread)
	}
}

// fail makes the next call of name return r.
func (f *fake) fail(name string, r result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results[name] = r
}

// does makes every call of name do what do does.
func (f *fake) does(name string, do func(args []uintptr) result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on[name] = do
}

// reset forgets the calls recorded so far.
func (f *fake) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

// recorded returns the calls, without those that set and restore the context.
func (f *fake) recorded() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var calls []call
	for _, c := range f.calls {
		if c.name != "cuCtxPushCurrent_v2" && c.name != "cuCtxPopCurrent_v2" {
			calls = append(calls, c)
		}
	}
	return calls
}

func (f *fake) callNames() []string {
	var names []string
	for _, c := range f.recorded() {
		names = append(names, c.name)
	}
	return names
}

func (f *fake) called(name string, args [maxArgs]uintptr) result {
	f.mu.Lock()
	thread := unix.Gettid()
	stack := f.contexts[thread]
	var current uintptr
	if len(stack) > 0 {
		current = stack[len(stack)-1]
	}
	f.calls = append(f.calls, call{name, args, current})
	do := f.on[name]
	if r, ok := f.results[name]; ok {
		delete(f.results, name)
		f.mu.Unlock()
		return r
	}
	switch name {
	case "cuCtxPushCurrent_v2":
		f.contexts[thread] = append(stack, args[0])
	case "cuCtxPopCurrent_v2":
		if len(stack) == 0 {
			f.mu.Unlock()
			return 201
		}
		f.contexts[thread] = stack[:len(stack)-1]
	}
	f.mu.Unlock()
	if do != nil {
		return do(args[:])
	}
	return f.behave(name, args[:])
}

// behave writes what a healthy driver would.
func (f *fake) behave(name string, a []uintptr) result {
	switch name {
	case "cuDriverGetVersion":
		write(a[0], int32(12080))
	case "cuGetErrorName":
		text, ok := f.names[result(a[0])]
		if !ok {
			return invalidValue
		}
		write(a[1], unsafe.Pointer(&text[0]))
	case "cuDeviceGetCount":
		write(a[0], int32(2))
	case "cuDeviceGet":
		write(a[0], int32(a[1]))
	case "cuDeviceGetName":
		writeText(a[0], "Fake H200\x00")
	case "cuDeviceGetUuid_v2", "cuDeviceGetUuid":
		writeText(a[0], "\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32"+string(rune('0'+a[1])))
	case "cuDeviceTotalMem_v2":
		write(a[0], uint64(140<<30))
	case "cuDeviceGetAttribute":
		write(a[0], map[uintptr]int32{40: 3, 75: 9, 76: 0}[a[1]])
	case "cuDeviceCanAccessPeer":
		write(a[0], int32(1))
	case "cuDeviceGetPCIBusId":
		writeText(a[0], "FFFF:FF:1F.0\x00")
	case "cuDevicePrimaryCtxRetain":
		write(a[0], fakeContext+fakeContextStep*a[1])
	case "cuCtxGetStreamPriorityRange":
		write(a[0], int32(0))
		write(a[1], int32(-5))
	case "cuStreamGetCtx":
		context := uintptr(fakeContext)
		if other, ok := f.foreign[a[0]]; ok {
			context = other
		}
		write(a[1], context)
	case "cuStreamCreateWithPriority", "cuEventCreate", "cuMemAlloc_v2", "cuModuleLoadDataEx", "cuModuleGetFunction":
		write(a[0], f.handle())
	case "cuMemGetInfo_v2":
		write(a[0], uint64(100<<30))
		write(a[1], uint64(140<<30))
	case "cuMemHostAlloc":
		mem := make([]byte, a[1])
		f.keep(mem)
		write(a[0], unsafe.Pointer(unsafe.SliceData(mem)))
	case "cuMemHostGetDevicePointer_v2":
		write(a[0], uint64(a[1]))
	case "cuEventElapsedTime":
		write(a[0], float32(1.5))
	}
	return success
}

// kept is memory that a fake gave out as C memory.
var kept struct {
	sync.Mutex
	mem [][]byte
}

func (f *fake) keep(mem []byte) {
	kept.Lock()
	defer kept.Unlock()
	kept.mem = append(kept.mem, mem)
}

func (f *fake) handle() uintptr {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handles += 0x10
	return f.handles
}

// at is the memory at an address that a call was given. Inlined, it crashes the
// compiler of Go 1.26.
//
//go:noinline
func at[T any](address uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

func write[T any](address uintptr, v T) { *at[T](address) = v }

func writeText(address uintptr, text string) {
	copy(unsafe.Slice(at[byte](address), len(text)), text)
}
