package cpu_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
)

func TestLimits(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{MemoryBytes: 1000, PinnedBytes: 500})
	require.NoError(t, err)
	require.EqualValues(t, 1000, dev.Properties().TotalBytes)
	a, err := dev.Alloc(600)
	require.NoError(t, err)
	free, total, err := dev.Memory()
	require.NoError(t, err)
	require.Equal(t, []int64{400, 1000}, []int64{free, total})
	_, err = dev.Alloc(401)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.ErrorContains(t, err, "401 bytes asked for, 400 of 1000 are free: cpu.Options.MemoryBytes sets the limit")
	require.Equal(t, 1, strings.Count(err.Error(), "out of memory"))
	b, err := dev.Alloc(400)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())

	h, err := dev.AllocHost(300, device.HostOptions{})
	require.NoError(t, err)
	_, err = dev.RegisterHost(make([]byte, 201), device.HostOptions{})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	r, err := dev.RegisterHost(make([]byte, 200), device.HostOptions{})
	require.NoError(t, err)
	pageable, err := dev.AllocHost(10_000, device.HostOptions{Pageable: true})
	require.NoError(t, err, "pageable memory is not counted")
	_, err = pageable.View()
	require.ErrorIs(t, err, device.ErrInvalid, "and has no device address")
	for _, x := range []*device.HostBuffer{h, r, pageable} {
		require.NoError(t, x.Close())
	}
	h, err = dev.AllocHost(500, device.HostOptions{})
	require.NoError(t, err, "everything came back")
	require.NoError(t, h.Close())
	require.NoError(t, dev.Close())
}

func TestMoreThanTheMachineHas(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{MemoryBytes: math.MaxInt64, PinnedBytes: math.MaxInt64})
	require.NoError(t, err)
	for _, bytes := range []int64{math.MaxInt64, 1 << 60, 1 << 47} {
		_, err := dev.Alloc(bytes)
		require.ErrorIs(t, err, device.ErrOutOfMemory, "%d bytes", bytes)
		_, err = dev.AllocHost(bytes, device.HostOptions{})
		require.ErrorIs(t, err, device.ErrOutOfMemory, "%d bytes", bytes)
	}
	free, total, err := dev.Memory()
	require.NoError(t, err)
	require.Equal(t, total, free, "what was refused is not counted")
	require.NoError(t, dev.Close())
}

// Memory that queued work will still use can't be freed, on either side.
func TestFreeInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, cpu.Options{Model: fixed(ms, ms)})
		s := r.stream("s")
		b, err := r.Alloc(64)
		require.NoError(t, err)
		h, err := r.AllocHost(64, device.HostOptions{})
		require.NoError(t, err)
		mem := make([]byte, 64)
		g, err := r.RegisterHost(mem, device.HostOptions{})
		require.NoError(t, err)
		l := &device.Launch{Kernel: read, Grid: [3]uint32{1}, Block: [3]uint32{1}}
		b.View().In(&l.Args)
		r.buf.Slice(0, 64).Out(&l.Args)
		r.do(s.CopyH2D(b.View(), h.Bytes()), s.CopyD2H(mem, b.View()), s.Launch(l))
		for range 3 {
			require.ErrorContains(t, b.Close(), "3 operations submitted before still use the memory")
			require.ErrorIs(t, h.Close(), device.ErrInvalid)
			require.ErrorIs(t, g.Close(), device.ErrInvalid)
		}
		r.do(s.Synchronize(background), b.Close(), h.Close(), g.Close())
		r.close()
	})
}

func TestLockedPages(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	h, err := dev.AllocHost(4096, device.HostOptions{Locked: true})
	if err != nil { // this machine's limit is smaller still
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		require.ErrorContains(t, err, "RLIMIT_MEMLOCK")
	} else {
		h.Bytes()[0] = 1
		require.NoError(t, h.Close())
	}
	require.NoError(t, dev.Close())
}

// Addresses, streams and events of one device mean nothing to another, even with
// the same index.
func TestDevicesDoNotMix(t *testing.T) {
	a, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	b, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	p, err := a.Alloc(64)
	require.NoError(t, err)
	s, err := a.NewStream(driver.StreamConfig{})
	require.NoError(t, err)
	e, err := a.NewEvent(driver.EventConfig{})
	require.NoError(t, err)
	own, err := b.NewStream(driver.StreamConfig{})
	require.NoError(t, err)

	require.ErrorIs(t, b.Memset(own, p, 0, 64), driver.ErrInvalid)
	require.ErrorIs(t, b.Free(p), driver.ErrInvalid)
	require.ErrorIs(t, b.Record(e, own), driver.ErrInvalid)
	require.ErrorIs(t, b.Wait(own, e), driver.ErrInvalid)
	require.ErrorIs(t, b.FreeStream(s), driver.ErrInvalid)

	require.NoError(t, errors.Join(a.Free(p), a.FreeStream(s), a.FreeEvent(e), b.FreeStream(own)))
	require.NoError(t, errors.Join(a.Close(), b.Close()))
}

// An adopted handle is a second name of the same queue.
func TestAdoptedStream(t *testing.T) {
	r := open(t, cpu.Options{})
	s := r.stream("s")
	adopted, err := r.StreamFromHandle(uintptr(s.Handle()))
	require.NoError(t, err)
	latch := make(chan struct{})
	r.do(s.HostFunc(func() { <-latch }))
	done, err := adopted.Done()
	require.NoError(t, err)
	require.False(t, done)
	close(latch)
	r.do(adopted.Synchronize(background), adopted.Close(), s.Synchronize(background))
	r.close()

	_, err = r.StreamFromHandle(1)
	require.ErrorIs(t, err, device.ErrClosed)
}

// Random allocations and frees against a plain map: every byte of a live
// allocation resolves, no byte outside one does, and nothing is given out twice.
func TestAddressSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := cpu.New(cpu.Options{MemoryBytes: 1 << 30})
		require.NoError(t, err)
		s, err := d.NewStream(driver.StreamConfig{})
		require.NoError(t, err)
		live := make(map[driver.Address]int64)
		seen := make(map[driver.Address]bool)
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				bytes := rapid.Int64Range(1, 2000).Draw(t, "bytes")
				p, err := d.Alloc(bytes)
				require.NoError(t, err)
				require.False(t, seen[p])
				seen[p], live[p] = true, bytes
			},
			"free": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("nothing to free")
				}
				p := rapid.SampledFrom(sorted(live)).Draw(t, "address")
				require.NoError(t, d.Free(p))
				require.ErrorIs(t, d.Free(p), driver.ErrInvalid)
				delete(live, p)
			},
			"": func(t *rapid.T) {
				for p := range seen {
					bytes, ok := live[p]
					if !ok {
						require.ErrorIs(t, d.Memset(s, p, 0, 1), driver.ErrInvalid)
						continue
					}
					require.NoError(t, d.Memset(s, p, 0, bytes))
					require.NoError(t, d.Memset(s, p+driver.Address(bytes-1), 0, 1))
					require.ErrorIs(t, d.Memset(s, p, 0, bytes+1), driver.ErrInvalid)
					require.ErrorIs(t, d.Memset(s, p-1, 0, 1), driver.ErrInvalid)
				}
				require.NoError(t, d.Synchronize(background))
			},
		})
		require.Equal(t, len(live), d.Live().Buffers)
		for p := range live {
			require.NoError(t, d.Free(p))
		}
		require.NoError(t, d.FreeStream(s))
		require.NoError(t, d.Close())
	})
}

func sorted(m map[driver.Address]int64) []driver.Address {
	keys := make([]driver.Address, 0, len(m))
	for p := range m {
		keys = append(keys, p)
	}
	slices.Sort(keys)
	return keys
}

// What is refused says which limit it met and what would help.
func TestOutOfMemoryNamesTheLimit(t *testing.T) {
	for want, o := range map[string]cpu.Options{
		"cpu.Options.MemoryBytes sets the limit": {MemoryBytes: 1000},
		"the Model's MemoryBytes sets the limit": {Model: &cpu.Model{MemoryBytes: 1000}},
	} {
		dev, err := cpu.Open(o)
		require.NoError(t, err)
		_, err = dev.Alloc(1001)
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		require.EqualError(t, err, "cpu: Alloc: out of memory (1001 bytes asked for, 1000 of 1000 are free: "+want+"; fewer or smaller buffers need less)")
		require.NoError(t, dev.Close())
	}
	dev, err := cpu.Open(cpu.Options{PinnedBytes: 100})
	require.NoError(t, err)
	_, err = dev.AllocHost(101, device.HostOptions{})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.ErrorContains(t, err, "cpu.Options.PinnedBytes sets the limit; fewer or smaller host buffers need less, and with HostOptions.Pageable")
	require.NoError(t, dev.Close())
}

func TestBadOptions(t *testing.T) {
	_, err := cpu.Open(cpu.Options{
		Index: -1, MemoryBytes: -2, PinnedBytes: -3,
		Model: &cpu.Model{
			CopyEngines: -4, KernelLatency: -5, H2D: cpu.Link{BytesPerSecond: math.NaN()},
			D2H: cpu.Link{BytesPerSecond: math.Inf(1)}, D2D: cpu.Link{Latency: -6},
			Peer: cpu.Link{Latency: -8, BytesPerSecond: -9},
		},
		Adversary: &cpu.Adversary{Delay: -7},
	})
	require.ErrorIs(t, err, device.ErrInvalid)
	for _, field := range []string{
		"Index is -1", "MemoryBytes is -2", "PinnedBytes is -3", "Model.CopyEngines is -4", "Model.KernelLatency is -5",
		"Model.H2D.BytesPerSecond is NaN", "Model.D2H.BytesPerSecond is +Inf", "Model.D2D.Latency is -6", "Adversary.Delay is -7ns",
		"Model.Peer.Latency is -8", "Model.Peer.BytesPerSecond is -9",
	} {
		require.ErrorContains(t, err, field)
	}
	var e *device.Error
	require.ErrorAs(t, err, &e)
	for _, mistake := range e.Err.(interface{ Unwrap() []error }).Unwrap() {
		require.IsType(t, &device.OptionError{}, mistake)
	}
	require.Equal(t, 1, strings.Count(err.Error(), "cpu:"), "nothing is prefixed twice")
}
