package devicetest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/invariants"
)

func eventNeverRecorded(f *fixture) {
	s, e := f.stream("s"), f.event("never")
	err := s.Wait(e)
	if invariants.Enabled {
		require.ErrorIs(f, err, device.ErrNotRecorded)
		require.ErrorContains(f, err, "never")
	} else {
		require.NoError(f, err)
	}
	f.synchronize(s)
	require.True(f, f.done(e))
	f.do(e.Synchronize(f.ctx))
}

// The writer is held, so that a reader who doesn't wait reads the old bytes every
// time.
func eventOrdersStreams(f *fixture) {
	writer, reader := f.stream("writer"), f.stream("reader")
	e, v, h := f.event("written"), f.buffer(64), f.host(64)
	f.do(writer.Memset(v, 1))
	release := f.hold(writer)
	f.do(writer.Memset(v, 2))
	f.do(writer.Record(e))
	f.do(reader.Wait(e))
	f.do(reader.CopyD2H(h, v))
	f.settle()
	release()
	f.synchronize(reader)
	require.Equal(f, all(2, 64), h)
}

// The first record is held and the second one isn't: the wait issued between them
// is held, while queries speak of the second.
func eventLaterRecord(f *fixture) {
	held, free, reader := f.stream("held"), f.stream("free"), f.stream("reader")
	e, v, h := f.event("e"), f.buffer(64), f.host(64)
	f.do(held.Memset(v, 1))
	release := f.hold(held)
	f.do(held.Memset(v, 2))
	f.do(held.Record(e))
	f.do(reader.Wait(e))
	f.do(free.Record(e))
	f.do(e.Synchronize(f.ctx))
	require.True(f, f.done(e))
	f.do(reader.CopyD2H(h, v))
	f.settle()
	release()
	f.synchronize(reader)
	require.Equal(f, all(2, 64), h)
}

// The first record is complete and a second one is held: a wait issued before the
// second doesn't see it, a wait issued after it does.
func eventBindsToNewest(f *fixture) {
	held, free := f.stream("held"), f.stream("free")
	early, late := f.stream("early"), f.stream("late")
	e := f.event("e")
	f.do(free.Record(e))
	f.do(early.Wait(e))
	release := f.hold(held)
	f.do(held.Record(e))
	require.False(f, f.done(e))
	f.do(late.Wait(e))
	f.synchronize(early)
	f.settle()
	ok, err := late.Done()
	require.NoError(f, err)
	require.False(f, ok)
	release()
	f.synchronize(late)
	require.True(f, f.done(e))
}

func eventManyWaiters(f *fixture) {
	const readers = 4 // a GPU has few hardware queues: streams that share one hold each other up
	writer, e, v, h := f.stream("writer"), f.event("e"), f.buffer(8), f.host(8*readers)
	var streams []*device.Stream
	for range readers { // making one may wait for a GPU that is at work
		streams = append(streams, f.stream("reader"))
	}
	f.do(writer.Memset(v, 1))
	release := f.hold(writer)
	f.do(writer.Memset(v, 2))
	f.do(writer.Record(e))
	for i, s := range streams {
		f.do(s.Wait(e))
		f.do(s.CopyD2H(h[8*i:8*i+8], v))
	}
	f.settle()
	release()
	for _, s := range streams {
		f.synchronize(s)
	}
	require.Equal(f, all(2, 8*readers), h)
}

// One slot, refilled by one stream and read by another, many laps over the same
// two events: all queued while the first copy is held.
func eventAlternation(f *fixture) {
	const laps, n = 200, 128
	up, down := f.stream("up"), f.stream("down")
	ready, consumed := f.event("ready"), f.event("consumed")
	v, in, out := f.buffer(n), f.host(n*laps), f.host(n*laps)
	for i := range laps {
		copy(in[i*n:], all(byte(i%251), n))
	}
	release := f.hold(up)
	for i := range laps {
		if i > 0 {
			f.do(up.Wait(consumed))
		}
		f.do(up.CopyH2D(v, in[i*n:(i+1)*n]))
		f.do(up.Record(ready))
		f.do(down.Wait(ready))
		f.do(down.CopyD2H(out[i*n:(i+1)*n], v))
		f.do(down.Record(consumed))
	}
	release()
	f.synchronize(down)
	require.Equal(f, in, out)
}

func eventFreed(f *fixture) {
	writer, reader := f.stream("writer"), f.stream("reader")
	v, h := f.buffer(8), f.host(8)
	e, err := f.dev.NewEvent(device.EventOptions{})
	require.NoError(f, err)
	f.do(writer.Memset(v, 1))
	release := f.hold(writer)
	f.do(writer.Memset(v, 2))
	f.do(writer.Record(e))
	f.do(reader.Wait(e))
	f.do(reader.CopyD2H(h, v))
	f.do(e.Close())
	f.settle()
	release()
	f.synchronize(reader)
	require.Equal(f, all(2, 8), h)
}

func eventSynchronizeContext(f *fixture) {
	s, e := f.stream("s"), f.eventWith(device.EventOptions{BlockingSync: true})
	release := f.hold(s)
	f.do(s.Record(e))
	require.ErrorIs(f, e.Synchronize(canceled()), context.Canceled)

	ctx, cancel := context.WithCancelCause(f.ctx)
	result := make(chan error)
	go func() { result <- e.Synchronize(ctx) }()
	go func() { result <- e.Synchronize(f.ctx) }()
	left := errors.New("left")
	cancel(left)
	require.ErrorIs(f, <-result, left)
	require.ErrorIs(f, e.Synchronize(ctx), left)
	release()
	require.NoError(f, <-result)
	f.do(e.Synchronize(canceled()))
}

func eventElapsedErrors(f *fixture) {
	s := f.stream("s")
	timed := func(name string) *device.Event {
		return f.eventWith(device.EventOptions{Name: name, Timing: true})
	}
	good, never, late, untimed := timed("good"), timed("never"), timed("late"), f.event("untimed")
	f.do(s.Record(good))
	f.do(s.Record(untimed))
	f.synchronize(s)
	release := f.hold(s)
	f.do(s.Record(late))
	for _, c := range []struct {
		event *device.Event
		want  error
	}{
		{untimed, device.ErrNoTiming}, {never, device.ErrNotRecorded}, {late, device.ErrNotComplete},
	} {
		_, err := device.Elapsed(good, c.event)
		require.ErrorIs(f, err, c.want)
		require.ErrorContains(f, err, c.event.Name())
		_, err = device.Elapsed(c.event, good)
		require.ErrorIs(f, err, c.want)
		require.ErrorContains(f, err, c.event.Name())
	}
	release()
	f.synchronize(s)
	_, err := device.Elapsed(good, late)
	require.NoError(f, err)
}

func eventElapsed(f *fixture) {
	s, v := f.stream("s"), f.buffer(1<<20)
	start := f.eventWith(device.EventOptions{Timing: true})
	end := f.eventWith(device.EventOptions{Timing: true})
	for range 3 {
		f.do(s.Record(start))
		f.do(s.Memset(v, 1))
		f.do(s.Record(end))
		f.synchronize(s)
		took, err := device.Elapsed(start, end)
		require.NoError(f, err)
		require.GreaterOrEqual(f, took, time.Duration(0))
	}
}
