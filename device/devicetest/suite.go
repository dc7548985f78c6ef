package devicetest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// Options tell Run what is particular about a driver. The zero value fits a
// driver whose host functions may block.
type Options struct {
	// Latch holds s from this point on until release is called. nil means a host
	// function that blocks.
	Latch func(t *testing.T, s *device.Stream) (release func())
	// Bubble runs every test in a synctest bubble of its own, for devices whose
	// time is modelled.
	Bubble bool
	// UncheckedRanges says that the driver doesn't notice a range that leaves its
	// allocation.
	UncheckedRanges bool
	// Peer opens a second device that is a peer of the first and yet not the same.
	// nil skips the tests of two devices. Streams of it are never latched.
	Peer func(t *testing.T) *device.Device
}

// Run checks that the device which open returns keeps the promises of package
// driver. Every test opens its own and closes it; a device that still has
// something alive then is an error.
func Run(t *testing.T, open func(t *testing.T) *device.Device, o Options) {
	if o.Latch == nil {
		o.Latch = hostLatch
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o.bubble(t, func(t *testing.T) { c.test(newFixture(t, open, o)) })
		})
	}
	for _, c := range peerCases {
		t.Run(c.name, func(t *testing.T) {
			if o.Peer == nil {
				t.Skip("Options.Peer is nil: there is no second device to test with")
			}
			o.bubble(t, func(t *testing.T) {
				f := newFixture(t, open, o)
				c.test(f, f.peer())
			})
		})
	}
}

func (o Options) bubble(t *testing.T, run func(t *testing.T)) {
	if o.Bubble {
		synctest.Test(t, run)
	} else {
		run(t)
	}
}

var cases = []struct {
	name string
	test func(f *fixture)
}{
	{"work of one stream runs in order", streamOrder},
	{"submitting does not wait", streamAsynchronous},
	{"streams do not hold each other up", streamIndependence},
	{"priorities out of range are clamped", streamPriorities},
	{"synchronising obeys the context", streamSynchronizeContext},
	{"work of a freed stream goes on", streamFreed},
	{"synchronising the device waits for every stream", deviceSynchronize},
	{"host functions run in order", hostFuncOrder},

	{"an event never recorded holds nobody", eventNeverRecorded},
	{"a wait orders two streams", eventOrdersStreams},
	{"a wait binds to the newest record before it", eventBindsToNewest},
	{"a later record does not move a wait", eventLaterRecord},
	{"many streams wait for one event", eventManyWaiters},
	{"two streams alternate over two events", eventAlternation},
	{"a freed event lets its waiters go on", eventFreed},
	{"synchronising an event obeys the context", eventSynchronizeContext},
	{"elapsed time says which event is to blame", eventElapsedErrors},
	{"elapsed time is not negative in stream order", eventElapsed},

	{"copies of any size and offset", copyRandom},
	{"copies from memory that is not pinned", copyPageable},
	{"copies from registered memory", copyRegistered},
	{"a copy of nothing", copyNothing},
	{"a memset keeps to its range", memsetRange},
	{"sides of unequal length are refused", copyUnequal},
	{"ranges that leave their memory are refused", copyOutOfRange},

	{"memory is aligned and distinct", memoryAligned},
	{"out of memory leaves the device healthy", memoryExhausted},
	{"impossible sizes are refused", memoryImpossible},
	{"freed memory comes back", memoryReturns},
	{"a handle of another device is refused", foreignHandles},
	{"memory of another device is refused", foreignMemory},
	{"a second Close does nothing", closedTwice},

	{"kernels run in stream order", kernelOrder},
	{"a launch's arguments are copied", kernelArguments},
	{"kernels see pinned host memory", kernelHostMemory},
	{"a kernel's ranges are checked", kernelOutOfRange},
	{"a kernel without a version for the device is refused", kernelUnsupported},

	{"a captured step runs when it is launched", graphReplays},
	{"a launched graph is one item of its stream", graphOrder},
	{"launches of one graph run one after another", graphSerial},
	{"streams forked off in a capture are captured", graphForks},
	{"what a step was captured with is baked in", graphBakedIn},
	{"a host function in a capture is a node", graphHostFunc},
	{"the nodes of a graph can be read and compared", graphNodes},
	{"an update gives a graph new parameters", graphUpdate},
	{"an update with another shape is refused", graphUpdateShape},
	{"memory that a graph has the address of is held", graphHolds},
	{"what a capture forbids spoils it and no stream", graphRefusals},
	{"a capture without its join is refused", graphUnjoined},
	{"two captures stay apart", graphMerge},
	{"a captured event is of no use outside", graphCapturedEvent},
	{"a capture whose body fails leaves nothing", graphBodyFails},
	{"others work on beside a capture", graphBeside},
	{"what was closed or is another device's is no graph", graphForeign},
	{"a graph of nothing", graphEmpty},
	{"launching a graph allocates nothing", graphSteadyState},
	{"16 goroutines launch and update one graph", graphGoroutines},

	{"64 goroutines with a stream each", goroutinesApart},
	{"64 goroutines on one stream", goroutinesTogether},
	{"steady state allocates nothing", steadyState},
	{"a closed device says so", closed},
}

var peerCases = []struct {
	name string
	test func(f, peer *fixture)
}{
	{"a wait orders streams of two devices", peerEventOrders},
	{"a wait binds to the newest record of the other device's event", peerEventBindsToNewest},
	{"a freed event of another device lets its waiters go on", peerEventFreed},
	{"an event is recorded by its own device alone", peerRecord},
	{"an event of a device that is closed", peerClosed},

	{"copies between devices of any size and offset", peerCopyRandom},
	{"copies between devices keep their place in the stream", peerCopyOrder},
	{"two devices alternate over two events", peerAlternation},
	{"replays of two devices meet lap by lap", peerReplays},
	{"a capture waits for no other device", peerCaptureWaits},
	{"copies between devices that can't be", peerCopyRefused},
	{"ranges that leave either device's memory are refused", peerCopyOutOfRange},

	{"16 goroutines between two devices", peerGoroutines},
	{"steady state between devices allocates nothing", peerSteadyState},
}

// fixture is a device under test and what the tests make on it. What a test makes
// through it is freed when the test has ended and all work is done.
type fixture struct {
	*testing.T
	dev      *device.Device
	opts     Options
	ctx      context.Context
	open     func(t *testing.T) *device.Device
	latches  []func()
	closings []func() error
	peers    []*fixture // of other devices; they end with this one
}

func newFixture(t *testing.T, open func(t *testing.T) *device.Device, o Options) *fixture {
	f := &fixture{T: t, dev: open(t), opts: o, ctx: context.Background(), open: open}
	t.Cleanup(f.end)
	return f
}

// peer opens a second device. Bytes have gone each way between the two: the first
// that do may wait for a GPU that is at work.
func (f *fixture) peer() *fixture {
	f.Helper()
	p := &fixture{T: f.T, dev: f.opts.Peer(f.T), opts: f.opts, ctx: f.ctx}
	f.peers = append(f.peers, p)
	v, w := f.buffer(16), p.buffer(16)
	for _, s := range []*device.Stream{f.stream("there"), p.stream("back")} {
		f.do(s.CopyPeer(w, v))
		f.do(s.CopyPeer(v, w))
		f.synchronize(s)
	}
	return p
}

// another is a second Device, of the same processor if there is no peer.
func (f *fixture) another() *fixture {
	open := f.opts.Peer
	if open == nil {
		open = f.open
	}
	p := &fixture{T: f.T, dev: open(f.T), opts: f.opts, ctx: f.ctx}
	f.peers = append(f.peers, p)
	return p
}

// end frees nothing before all work of all devices is done: each may use what
// another owns.
func (f *fixture) end() {
	for _, release := range f.latches {
		release()
	}
	all := append([]*fixture{f}, f.peers...)
	for _, x := range all {
		if len(x.closings) > 0 {
			require.NoError(f, x.dev.Synchronize(f.ctx))
		}
	}
	for _, x := range all {
		x.free()
	}
}

func (f *fixture) free() {
	for _, closing := range f.closings {
		require.NoError(f, closing())
	}
	u := f.dev.Usage()
	u.Allocations = 0
	require.Equal(f, device.Usage{}, u, "alive at the end")
	require.NoError(f, f.dev.Close())
	require.NoError(f, f.dev.Close(), "a second Close does nothing")
}

// stream, event, buffer and host make one and free it after the test.
func (f *fixture) stream(name string) *device.Stream {
	f.Helper()
	s, err := f.dev.NewStream(device.StreamOptions{Name: name})
	require.NoError(f, err)
	f.closings = append(f.closings, s.Close)
	return s
}

func (f *fixture) event(name string) *device.Event {
	return f.eventWith(device.EventOptions{Name: name})
}

func (f *fixture) eventWith(o device.EventOptions) *device.Event {
	f.Helper()
	e, err := f.dev.NewEvent(o)
	require.NoError(f, err)
	f.closings = append(f.closings, e.Close)
	return e
}

func (f *fixture) buffer(bytes int64) device.View {
	f.Helper()
	b, err := f.dev.Alloc(bytes)
	require.NoError(f, err)
	f.closings = append(f.closings, b.Close)
	return b.View()
}

func (f *fixture) host(bytes int64) []byte {
	f.Helper()
	h, err := f.dev.AllocHost(bytes, device.HostOptions{})
	require.NoError(f, err)
	f.closings = append(f.closings, h.Close)
	return h.Bytes()
}

// hold latches s until the returned function is called, at the latest at the
// test's end.
func (f *fixture) hold(s *device.Stream) (release func()) {
	f.Helper()
	release = sync.OnceFunc(f.opts.Latch(f.T, s))
	f.latches = append(f.latches, release)
	return release
}

func hostLatch(t *testing.T, s *device.Stream) (release func()) {
	t.Helper()
	latch := make(chan struct{})
	require.NoError(t, s.HostFunc(func() { <-latch }))
	return func() { close(latch) }
}

func (f *fixture) do(err error) {
	f.Helper()
	require.NoError(f, err)
}

func (f *fixture) synchronize(s *device.Stream) {
	f.Helper()
	require.NoError(f, s.Synchronize(f.ctx))
}

func (f *fixture) done(e *device.Event) bool {
	f.Helper()
	ok, err := e.Done()
	require.NoError(f, err)
	return ok
}

// settle lets every engine do what it could do by now: work that wrongly doesn't
// wait has run when settle returns, on engines that serve in order.
func (f *fixture) settle() {
	f.Helper()
	s := f.stream("settle")
	v, h := f.buffer(16), f.host(16)
	f.do(s.CopyH2D(v, h))
	f.do(s.Memset(v, 0))
	f.synchronize(s) // no D2H: on a GPU it would queue behind those that wait
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// all is n bytes of one value.
func all(value byte, n int) []byte {
	mem := make([]byte, n)
	for i := range mem {
		mem[i] = value
	}
	return mem
}
