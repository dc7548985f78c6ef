package cpu_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
)

// twoDevices runs a test on two plain and on two modelled devices.
func twoDevices(t *testing.T, test func(here, there *rig)) {
	for name, m := range map[string]*cpu.Model{"plain": nil, "modelled": linked(4*ms, 4*ms)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rigs := openAll(t, 2, cpu.Options{Model: m})
				test(rigs[0], rigs[1])
			})
		})
	}
}

// A device faults with a record pending for which another's stream waits: that wait
// is the other's fault, when its stream comes to it, and nobody hangs.
func TestAFaultReachesThoseThatWait(t *testing.T) {
	twoDevices(t, func(here, there *rig) {
		bad, e := there.stream("bad"), there.event("e")
		s, late, before, ran := here.stream("s"), here.stream("late"), here.event("before"), false
		latch := make(chan struct{})
		there.do(bad.HostFunc(func() { <-latch }), bad.Launch(kernel("bad", func() { panic(errUser) })), bad.Record(e))
		held := make(chan struct{})
		here.do(s.HostFunc(func() { <-held }), s.Record(before), s.Wait(e), s.HostFunc(func() { ran = true }))
		close(latch)
		require.ErrorIs(here.t, bad.Synchronize(background), errUser)
		_, err := before.Done()
		require.NoError(here.t, err, "the stream has not come to the wait")
		close(held)
		err = s.Synchronize(background)
		require.ErrorIs(here.t, err, device.ErrFault)
		require.ErrorIs(here.t, err, errUser)
		require.ErrorContains(here.t, err, `Wait on stream "s": cpu:1`)
		var fault *cpu.Fault
		require.ErrorAs(here.t, err, &fault)
		require.Equal(here.t, "Wait", fault.Op)
		require.False(here.t, ran)
		require.ErrorIs(here.t, late.Wait(e), device.ErrFault)
		here.close()
		there.close()
	})
}

// So does the fault of a device that waits for a device that waits.
func TestAFaultGoesFromDeviceToDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rigs := openAll(t, 4, cpu.Options{Model: linked(4*ms, 4*ms)})
		var last *device.Event
		submitted := make(chan struct{})
		for i, r := range rigs {
			s, e := r.stream("s"), r.event("e")
			if i == 0 {
				r.do(s.Launch(kernel("bad", func() { <-submitted; panic(errUser) })))
			} else {
				r.do(s.Wait(last))
			}
			r.do(s.Record(e))
			last = e
		}
		close(submitted)
		err := last.Synchronize(background)
		require.ErrorIs(t, err, errUser)
		require.ErrorContains(t, err, "cpu:3: SynchronizeEvent")
		for _, r := range rigs {
			r.close()
		}
	})
}

// Closing a device drops its work, and what another device waits for with it.
func TestClosingAPeerThatIsWaitedFor(t *testing.T) {
	twoDevices(t, func(here, there *rig) {
		held, e, s := there.stream("held"), there.event("e"), here.stream("s")
		latch := make(chan struct{})
		there.do(held.HostFunc(func() { <-latch }), held.HostFunc(func() {}), held.Record(e))
		here.do(s.Wait(e))
		closed := make(chan error)
		go func() { closed <- there.Close() }()
		err := s.Synchronize(background)
		require.ErrorIs(here.t, err, device.ErrFault)
		require.ErrorIs(here.t, err, device.ErrClosed)
		close(latch)
		require.ErrorAs(here.t, <-closed, new(*cpu.LeakError))
		here.close()
	})
}

// A device that ends while it waits is no concern of the one it waits for.
func TestAPeerThatNoLongerWaits(t *testing.T) {
	twoDevices(t, func(here, there *rig) {
		s, e := there.stream("s"), there.event("e")
		latch := make(chan struct{})
		there.do(s.HostFunc(func() { <-latch }), s.Record(e))
		waiting, bad := here.stream("waiting"), here.stream("bad")
		here.do(waiting.Wait(e), bad.Launch(kernel("bad", func() { panic(errUser) })))
		require.ErrorIs(here.t, here.Synchronize(background), errUser)
		here.close()
		close(latch)
		there.do(e.Synchronize(background))
		there.in(s)
		there.do(s.Synchronize(background))
		there.close()
	})
}

// Memory can't be freed while another device's copy uses it; a device may be closed
// meanwhile, and then the copy ends with the memory that it began with.
func TestPeerMemoryInUse(t *testing.T) {
	twoDevices(t, func(here, there *rig) {
		held := here.stream("held")
		theirs, err := there.Alloc(64)
		there.do(err)
		latch := make(chan struct{})
		mine, out := here.buffer(64), here.hostBuffer(64)
		fill := there.stream("fill")
		there.do(fill.Memset(theirs.View(), 5), fill.Synchronize(background))
		here.do(held.HostFunc(func() { <-latch }), held.CopyPeer(mine, theirs.View()), held.CopyD2H(out, mine))
		require.ErrorIs(here.t, theirs.Close(), device.ErrInvalid)
		require.ErrorContains(here.t, theirs.Close(), "1 operations")
		var leak *cpu.LeakError
		require.ErrorAs(here.t, there.Close(), &leak)
		close(latch)
		here.do(held.Synchronize(background))
		require.Equal(here.t, filled(5, 64), out)
		here.close()
	})
}

// A call that fails leaves nothing behind: neither a use of the memory nor a wait.
func TestFailingPeerCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []cpu.Call
		here := open(t, cpu.Options{Adversary: &cpu.Adversary{Fail: func(c cpu.Call) error {
			if c.Op == "Wait" || c.Op == "CopyPeer" {
				c.N = 0
				calls = append(calls, c)
				return errInjected
			}
			return nil
		}}})
		there := open(t, cpu.Options{Index: 1})
		s, other, e := here.stream("s"), there.stream("other"), there.event("e")
		latch := make(chan struct{})
		there.do(other.HostFunc(func() { <-latch }), other.Record(e))
		require.ErrorIs(t, s.Wait(e), errInjected)
		require.ErrorIs(t, s.CopyPeer(here.buf, there.buf), errInjected)
		require.Equal(t, []cpu.Call{{Op: "Wait", Stream: "s", Event: "e"}, {Op: "CopyPeer", Stream: "s", Bytes: 256}}, calls)
		done, err := s.Done()
		require.NoError(t, err)
		require.True(t, done)

		closed, err := driver.Unwrap(there.Driver()).(*cpu.Device).NewStream(driver.StreamConfig{})
		require.NoError(t, err)
		require.ErrorIs(t, here.Driver().(driver.Peer).CopyPeer(closed, // a stream of the other device
			driver.Place{Device: here.Driver(), Address: here.buf.Address()},
			driver.Place{Device: there.Driver(), Address: there.buf.Address()}, 256), device.ErrInvalid)
		there.do(there.Driver().FreeStream(closed))
		close(latch)
		closeAll([]*rig{here, there})
	})
}

// handoff sends two batches from one device to the other through one slot on each,
// with a kernel that reads them there, and returns what it read.
func handoff(here, there *rig, keep edges) (results [2][]byte, err error) {
	up, fetch, compute := here.stream("upload"), there.stream("fetch"), there.stream("compute")
	ready, consumed := here.event("ready"), there.event("consumed")
	copied := there.event("copied")
	slot, landing := here.buffer(64), there.buffer(64)
	try := func(errs ...error) { err = errors.Join(append([]error{err}, errs...)...) }
	var outs [2]device.View
	for i := range outs {
		outs[i], results[i] = there.buffer(64), there.hostBuffer(64)
		host := here.hostBuffer(64)
		copy(host, filled(byte(i+1), 64))
		if keep.consumed && i > 0 {
			try(up.Wait(copied), fetch.Wait(consumed))
		}
		try(up.CopyH2D(slot, host), up.Record(ready))
		if keep.ready {
			try(fetch.Wait(ready))
		}
		try(fetch.CopyPeer(landing, slot), fetch.Record(copied))
		if keep.copied {
			try(compute.Wait(copied))
		}
		try(compute.Launch(reading(landing, outs[i])), compute.Record(consumed))
	}
	try(here.Synchronize(background), there.Synchronize(background))
	for i := range outs {
		try(compute.CopyD2H(results[i], outs[i]))
	}
	try(compute.Synchronize(background))
	return results, err
}

// slowLink is a model on which what one device does and what the other does to the
// same bytes never end together.
func slowLink() *cpu.Model {
	m := linked(9*ms, 6*ms)
	m.KernelTime = func(*device.Launch) time.Duration { return 7 * ms }
	return m
}

// With its edges a hand-over from device to device holds against any adversary; each
// edge left out shows, in the bytes or as a race.
func TestMissingEdgeBetweenDevicesShows(t *testing.T) {
	for name, keep := range map[string]edges{
		"none":     careful,
		"ready":    {consumed: true, copied: true},
		"consumed": {ready: true, copied: true},
		"copied":   {ready: true, consumed: true},
	} {
		for way, a := range map[string]cpu.Adversary{
			"in the bytes": {Poison: true},
			"as a race":    {Poison: true, CheckInputs: true, Reorder: true, Delay: ms / 2},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				if raceEnabled && keep != careful {
					t.Skip("the race detector sees it too, and fails the test")
				}
				for seed := range uint64(10) {
					synctest.Test(t, func(t *testing.T) {
						a.Seed = seed
						rigs := openAll(t, 2, cpu.Options{Model: slowLink(), Adversary: &a})
						got, err := handoff(rigs[0], rigs[1], keep)
						whole := err == nil && string(got[0]) == string(filled(1, 64)) && string(got[1]) == string(filled(2, 64))
						require.Equal(t, keep == careful, whole, "%v %v", got, err)
						if err != nil {
							require.ErrorAs(t, err, new(*cpu.Race))
						}
						for _, r := range rigs {
							r.close()
						}
					})
				}
			})
		}
	}
}

// The destination of a copy under way is poison; a source that changes meanwhile is
// a race that ends the device whose stream copies.
func TestPeerCopyUnderAnAdversary(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector sees it too, and fails the test")
	}
	synctest.Test(t, func(t *testing.T) {
		rigs := openAll(t, 2, cpu.Options{Model: linked(4*ms, 6*ms), Adversary: &cpu.Adversary{Poison: true, CheckInputs: true}})
		here, there := rigs[0], rigs[1]
		s, up, look := here.stream("s"), there.stream("up"), here.stream("look")
		out := here.hostBuffer(256)
		here.do(up.Memset(there.buf, 1), up.Synchronize(background))
		here.do(s.CopyPeer(here.buf, there.buf), s.Synchronize(background))
		here.do(look.CopyD2H(out, here.buf), look.Synchronize(background))
		require.Equal(t, filled(1, 256), out)

		here.do(s.CopyPeer(here.buf, there.buf))
		time.Sleep(ms)
		here.do(look.CopyD2H(out, here.buf), look.Synchronize(background))
		require.Equal(t, filled(cpu.PoisonByte, 256), out)
		here.do(up.CopyH2D(there.buf, there.host))
		err := s.Synchronize(background)
		var race *cpu.Race
		require.ErrorAs(t, err, &race)
		require.Equal(t, cpu.Race{Argument: -1, Bytes: 256}, *race)
		require.ErrorContains(t, err, `CopyPeer on stream "s"`)
		there.do(there.Synchronize(background))
		here.close()
		there.close()
	})
}
