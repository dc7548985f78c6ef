package devicetest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// The writer is held, and the reader is on the other device: one that doesn't wait
// reads the old bytes every time. The order then comes back over a second event.
func peerEventOrders(f, peer *fixture) {
	require.True(f, f.dev.PeerOf(peer.dev))
	require.True(f, peer.dev.PeerOf(f.dev))
	writer, last, reader := f.stream("writer"), f.stream("last"), peer.stream("reader")
	written, read := f.event("written"), peer.event("read")
	v, w, h := f.buffer(64), peer.buffer(64), f.host(64)
	f.do(writer.Memset(v, 1))
	f.do(reader.Memset(w, 1))
	peer.synchronize(reader)
	release := f.hold(writer)
	f.do(writer.Memset(v, 2))
	f.do(writer.Record(written))
	f.do(reader.Wait(written))
	f.do(reader.CopyPeer(w, v))
	f.do(reader.Record(read))
	f.do(last.Wait(read))
	f.do(last.Memset(v, 3))
	f.do(last.CopyPeer(v.Slice(0, 32), w.Slice(0, 32)))
	f.do(last.CopyD2H(h, v))
	peer.settle()
	f.settle()
	require.False(f, peer.done(read))
	release()
	f.synchronize(last)
	require.True(f, peer.done(read))
	require.Equal(f, append(all(2, 32), all(3, 32)...), h)
}

// The first record is complete and a second one is held: a wait issued before the
// second doesn't see it, a wait issued after it does.
func peerEventBindsToNewest(f, peer *fixture) {
	held, free := f.stream("held"), f.stream("free")
	early, late := peer.stream("early"), peer.stream("late")
	e := f.event("e")
	f.do(free.Record(e))
	f.do(early.Wait(e))
	release := f.hold(held)
	f.do(held.Record(e))
	f.do(late.Wait(e))
	peer.synchronize(early)
	peer.settle()
	ok, err := late.Done()
	require.NoError(f, err)
	require.False(f, ok)
	f.do(free.Record(e)) // does not move the wait
	f.do(e.Synchronize(f.ctx))
	ok, err = late.Done()
	require.NoError(f, err)
	require.False(f, ok)
	release()
	peer.synchronize(late)
}

func peerEventFreed(f, peer *fixture) {
	writer, reader := f.stream("writer"), peer.stream("reader")
	v, w, h := f.buffer(8), peer.buffer(8), peer.host(8)
	e, err := f.dev.NewEvent(device.EventOptions{})
	require.NoError(f, err)
	f.do(writer.Memset(v, 1))
	release := f.hold(writer)
	f.do(writer.Memset(v, 2))
	f.do(writer.Record(e))
	f.do(reader.Wait(e))
	f.do(reader.CopyPeer(w, v))
	f.do(reader.CopyD2H(h, w))
	f.do(e.Close())
	peer.settle()
	release()
	peer.synchronize(reader)
	require.Equal(f, all(2, 8), h)
}

func peerRecord(f, peer *fixture) {
	s := f.stream("s")
	timed := device.EventOptions{Name: "e", Timing: true}
	mine, other := f.eventWith(timed), peer.eventWith(timed)
	require.ErrorIs(f, s.Record(other), device.ErrInvalid)
	f.do(s.Record(mine))
	f.do(peer.stream("p").Record(other))
	_, err := device.Elapsed(mine, other)
	require.ErrorIs(f, err, device.ErrInvalid)

	d := f.dev.Driver().(driver.Peer)
	for _, h := range []driver.Event{0, 12345} {
		require.ErrorIs(f, d.WaitPeer(s.Handle(), peer.dev.Driver(), h), device.ErrInvalid)
	}
	f.synchronize(s)
}

func peerClosed(f, peer *fixture) {
	s, e := f.stream("s"), peer.event("e")
	p := peer.stream("p")
	f.do(p.Record(e))
	v := peer.buffer(8)
	peer.synchronize(p)
	for _, closing := range peer.closings {
		f.do(closing())
	}
	peer.closings = nil
	f.do(peer.dev.Close())
	require.ErrorIs(f, s.Wait(e), device.ErrClosed)
	require.ErrorIs(f, s.CopyPeer(f.buffer(8), v), device.ErrClosed)
	f.synchronize(s)
}

// Random bytes go to and fro in pieces of any size and offset, in streams of either
// device; copies of both memories on the host say what must come out.
func peerCopyRandom(f, peer *fixture) {
	const n = 1 << 18
	rnd := rand.New(rand.NewPCG(5, 6))
	sides := [2]struct {
		*fixture
		stream *device.Stream
		event  *device.Event
		view   device.View
		mirror []byte
	}{}
	for i, x := range []*fixture{f, peer} {
		side := &sides[i]
		side.fixture, side.stream, side.event = x, x.stream("s"), x.event("e")
		side.view, side.mirror = x.buffer(n), make([]byte, n)
		in := x.host(n)
		for j := range in {
			in[j] = byte(rnd.Uint32())
		}
		copy(side.mirror, in)
		f.do(side.stream.CopyH2D(side.view, in))
		f.do(side.stream.Record(side.event))
	}
	for range 100 {
		size := 1 + rnd.Int64N(1<<(1+rnd.IntN(17)))
		at, from := rnd.Int64N(n-size+1), rnd.Int64N(n-size+1)
		to := rnd.IntN(2)
		by := rnd.IntN(2)
		dst, src, actor := &sides[to], &sides[1-to], &sides[by]
		f.do(actor.stream.Wait(sides[1-by].event))
		f.do(actor.stream.CopyPeer(dst.view.Slice(at, size), src.view.Slice(from, size)))
		f.do(actor.stream.Record(actor.event))
		copy(dst.mirror[at:at+size], src.mirror[from:])
	}
	for i := range sides {
		side, out := &sides[i], sides[i].host(n)
		f.do(side.stream.Wait(sides[1-i].event))
		f.do(side.stream.CopyD2H(out, side.view))
		side.synchronize(side.stream)
		require.True(f, string(side.mirror) == string(out), "device %d", i)
	}
}

// The same bytes on the other device are overwritten again and again in one stream;
// what comes back between tells whether any copy overtook another.
func peerCopyOrder(f, peer *fixture) {
	const n, laps = 4096, 50
	s, v, back, w := f.stream("s"), f.buffer(n), f.buffer(n), peer.buffer(n)
	out, want := f.host(n*laps), make([]byte, n*laps)
	for i := range laps {
		copy(want[i*n:], all(byte(i), n))
	}
	release := f.hold(s)
	for i := range laps {
		f.do(s.Memset(v, byte(i)))
		f.do(s.CopyPeer(w, v))
		f.do(s.CopyPeer(back, w))
		f.do(s.CopyD2H(out[i*n:(i+1)*n], back))
	}
	release()
	f.synchronize(s)
	require.Equal(f, want, out)
}

// One slot on each device, filled by one and read by the other, many laps over the
// same two events: all queued while the first copy is held.
func peerAlternation(f, peer *fixture) {
	const laps, n = 200, 128
	up, down := f.stream("up"), peer.stream("down")
	ready, consumed := f.event("ready"), peer.event("consumed")
	v, w, in, out := f.buffer(n), peer.buffer(n), f.host(n*laps), peer.host(n*laps)
	for i := range laps {
		copy(in[i*n:], all(byte(i%251), n))
	}
	release := f.hold(up)
	for i := range laps {
		if i > 0 {
			f.do(up.Wait(consumed))
		}
		f.do(up.CopyH2D(v, in[i*n:(i+1)*n]))
		f.do(up.CopyPeer(w, v))
		f.do(up.Record(ready))
		f.do(down.Wait(ready))
		f.do(down.CopyD2H(out[i*n:(i+1)*n], w))
		f.do(down.Record(consumed))
	}
	release()
	peer.synchronize(down)
	require.Equal(f, in, out)
}

func peerCopyRefused(f, peer *fixture) {
	s, v, w := f.stream("s"), f.buffer(64), peer.buffer(64)
	require.ErrorIs(f, s.CopyPeer(v, w.Slice(0, 32)), device.ErrInvalid)
	require.ErrorIs(f, s.CopyPeer(w, peer.buffer(64)), device.ErrInvalid, "both are on the other device")
	f.do(s.CopyPeer(v.Slice(0, 0), w.Slice(0, 0)))
	f.do(s.CopyPeer(f.buffer(0), peer.buffer(0)))

	f.do(s.Memset(v.Slice(0, 32), 4))
	f.do(s.CopyPeer(v.Slice(32, 32), v.Slice(0, 32))) // within one device
	f.do(s.CopyPeer(w, v))
	f.synchronize(s)
	h, p := peer.host(64), peer.stream("p")
	f.do(p.CopyD2H(h, w))
	peer.synchronize(p)
	require.Equal(f, all(4, 64), h)
}

// The facade's views can't leave their buffer, so the ranges are made by hand.
func peerCopyOutOfRange(f, peer *fixture) {
	if f.opts.UncheckedRanges {
		f.Skip("this driver doesn't check ranges")
	}
	s, v, w := f.stream("s"), f.buffer(256), peer.buffer(256)
	d := f.dev.Driver().(driver.Peer)
	mine := driver.Place{Device: d, Address: v.Address()}
	other := driver.Place{Device: peer.dev.Driver(), Address: w.Address()}
	past := func(p driver.Place) driver.Place { p.Address++; return p }
	swapped := [2]driver.Place{{Device: d, Address: w.Address()}, {Device: other.Device, Address: v.Address()}}
	for name, p := range map[string][2]driver.Place{
		"past the end here":             {past(mine), other},
		"past the end there":            {mine, past(other)},
		"the other's address here":      {swapped[0], other},
		"this one's address on another": {mine, swapped[1]},
	} {
		require.ErrorIs(f, d.CopyPeer(s.Handle(), p[0], p[1], 256), device.ErrInvalid, name)
		require.ErrorIs(f, d.CopyPeer(s.Handle(), p[1], p[0], 256), device.ErrInvalid, name)
	}
	require.ErrorIs(f, d.CopyPeer(s.Handle(), mine, other, -1), device.ErrInvalid)
	require.ErrorIs(f, d.CopyPeer(12345, mine, other, 256), device.ErrInvalid)
	f.do(d.CopyPeer(s.Handle(), mine, other, 256))
	f.synchronize(s)
}

// Each goroutine sends bytes across and back, over events of both devices.
func peerGoroutines(f, peer *fixture) {
	const n, laps, bytes = 16, 20, 512
	v, w := f.buffer(n*bytes), peer.buffer(n*bytes)
	in, out := f.host(n*bytes), f.host(n*bytes)
	type pair struct {
		here, there *device.Stream
		sent, back  *device.Event
	}
	pairs := make([]pair, n)
	for i := range pairs {
		pairs[i] = pair{f.stream("here"), peer.stream("there"), f.event("sent"), peer.event("back")}
	}
	f.together(n, func(i int) error {
		p, from, to := pairs[i], i*bytes, (i+1)*bytes
		mine, theirs := v.Slice(int64(from), bytes), w.Slice(int64(from), bytes)
		for lap := range laps {
			copy(in[from:to], all(byte(i+lap), bytes))
			err := steps(
				func() error { return p.here.CopyH2D(mine, in[from:to]) },
				func() error { return p.here.CopyPeer(theirs, mine) },
				func() error { return p.here.Record(p.sent) },
				func() error { return p.there.Wait(p.sent) },
				func() error { return p.there.Launch(add(theirs, 1)) },
				func() error { return p.there.CopyPeer(mine, theirs) },
				func() error { return p.there.Record(p.back) },
				func() error { return p.here.Wait(p.back) },
				func() error { return p.here.CopyD2H(out[from:to], mine) },
				func() error { return p.here.Synchronize(f.ctx) },
			)
			if err != nil {
				return err
			}
			if want := all(byte(i+lap+1), bytes); string(want) != string(out[from:to]) {
				f.Errorf("goroutine %d, lap %d: other bytes than its own", i, lap)
			}
		}
		return nil
	})
}

func peerSteadyState(f, peer *fixture) {
	here, there := f.stream("here"), peer.stream("there")
	ready, consumed := f.event("ready"), peer.event("consumed")
	v, w := f.buffer(4096), peer.buffer(4096)
	batch := func() {
		f.do(here.Wait(consumed))
		f.do(here.Memset(v, 1))
		f.do(here.CopyPeer(w, v))
		f.do(here.Record(ready))
		f.do(there.Wait(ready))
		f.do(there.CopyPeer(v, w))
		f.do(there.Record(consumed))
		f.do(consumed.Synchronize(f.ctx))
	}
	f.do(there.Record(consumed))
	for range 100 {
		batch()
	}
	before := [2]int64{f.dev.Usage().Allocations, peer.dev.Usage().Allocations}
	allocs := testing.AllocsPerRun(200, batch)
	require.Equal(f, before, [2]int64{f.dev.Usage().Allocations, peer.dev.Usage().Allocations}, "allocations of the drivers")
	if raceEnabled {
		return // the detector allocates
	}
	require.Zero(f, allocs, "Go allocations a batch")
}
