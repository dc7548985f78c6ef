package devicetest

import (
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// A reducer is one of two devices that each replay a captured step and then add up what
// both have made. What marks the result ready is an event recorded behind each launch: an
// identity of the launch's own is the same in every replay.
type reducer struct {
	*fixture
	stream           *device.Stream
	step             *device.Exec // makes the result
	reduce           *device.Exec // fetches the other's and adds 1 to it
	in               []byte       // the host's, of all laps
	out              []byte       // sums of all laps
	x, made, foreign device.View  // the input, the captured step's result, the other's
	ready, fetched   *device.Event
}

const reducerBytes = 64

func newReducer(f *fixture, name string, laps int) *reducer {
	f.graphs()
	r := &reducer{fixture: f, stream: f.stream(name), ready: f.event(name + " ready"), fetched: f.event(name + " fetched"),
		in: f.host(int64(laps) * reducerBytes), out: f.host(int64(laps) * reducerBytes),
		x: f.buffer(reducerBytes), made: f.buffer(reducerBytes), foreign: f.buffer(reducerBytes)}
	r.step = f.exec(r.stream, func() {
		f.do(r.stream.CopyD2D(r.made, r.x))
		f.do(r.stream.Launch(add(r.made, 1)))
	})
	return r
}

// joins captures what fetches the other's result. The graph has the address of memory of
// another device, which is that one's to keep until free.
func (r *reducer) joins(other *reducer) (free func()) {
	g := r.capture(r.stream, func() {
		r.do(r.stream.CopyPeer(r.foreign, other.made))
		r.do(r.stream.Launch(add(r.foreign, 1)))
	})
	r.reduce = r.instantiate(g)
	return func() {
		r.do(r.reduce.Close())
		r.do(g.Close())
	}
}

// make submits a lap's input and the captured step on it.
func (r *reducer) make(lap int, other *reducer) {
	if lap > 0 {
		r.do(r.stream.Wait(other.fetched)) // it has the result of the lap before
	}
	r.do(r.stream.CopyH2D(r.x, r.in[lap*reducerBytes:(lap+1)*reducerBytes]))
	r.do(r.step.Launch(r.stream))
	r.do(r.stream.Record(r.ready))
}

// fetch submits what brings both results to the host.
func (r *reducer) fetch(lap int, other *reducer) {
	r.do(r.stream.Wait(other.ready))
	r.do(r.reduce.Launch(r.stream))
	r.do(r.stream.Record(r.fetched))
	r.do(r.stream.CopyD2H(r.out[lap*reducerBytes:(lap+1)*reducerBytes], r.foreign))
}

// Two devices replay their steps on other inputs each time, either of them late in turn,
// and each fetches the other's result of that very lap.
func peerReplays(f, peer *fixture) {
	const laps = 12
	pair := [2]*reducer{newReducer(f, "here", laps), newReducer(peer, "there", laps)}
	for i, r := range pair {
		free := r.joins(pair[1-i])
		defer func() {
			r.synchronize(r.stream)
			free()
		}()
	}
	for lap := range laps {
		for i, r := range pair {
			copy(r.in[lap*reducerBytes:], all(byte(3*lap+100*i), reducerBytes))
		}
	}
	for lap := range laps {
		late := pair[lap%2]
		release := late.hold(late.stream)
		for i, r := range pair {
			r.make(lap, pair[1-i])
		}
		for i, r := range pair {
			r.fetch(lap, pair[1-i])
		}
		pair[1-lap%2].settle()
		release()
	}
	for i, r := range pair {
		r.synchronize(r.stream)
		for lap := range laps {
			require.Equal(f, all(byte(3*lap+100*(1-i)+2), reducerBytes), r.out[lap*reducerBytes:(lap+1)*reducerBytes], "device %d, lap %d", i, lap)
		}
	}
}

// A capture reaches over to another device by copies alone: a wait across would be a node
// that no launch can place.
func peerCaptureWaits(f, peer *fixture) {
	f.graphs()
	s, p := f.stream("s"), peer.stream("p")
	outside, inside, v := peer.event("outside"), f.event("inside"), f.buffer(8)
	f.do(p.Record(outside))
	for want, call := range map[device.CaptureError]func() error{
		device.CaptureIsolation:   func() error { return s.Wait(outside) },
		device.CaptureUnsupported: func() error { return p.Wait(inside) },
	} {
		_, err := s.Capture(func() error {
			f.do(s.Memset(v, 1))
			f.do(s.Record(inside))
			require.ErrorIs(f, call(), want)
			return nil
		})
		require.ErrorIs(f, err, device.CaptureInvalidated)
		f.usable(s)
	}
	f.do(p.Record(outside))
	peer.synchronize(p)
}
