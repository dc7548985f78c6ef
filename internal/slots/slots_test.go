package slots_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/internal/slots"
)

// A rig is a ring on a device of its own, with a stream that fills its slots.
type rig struct {
	t      *testing.T
	dev    *device.Device
	copies *device.Stream
	ring   *slots.Ring
}

var options = slots.Options{Bytes: 8, Reads: 4, Filled: device.EventOptions{Name: "filled"}, Read: device.EventOptions{Name: "read"}}

func newRig(t *testing.T, n, computes int) *rig {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	r := &rig{t: t, dev: dev}
	r.copies = r.stream("copies")
	r.make(n, computes)
	return r
}

// make makes a ring of new slots.
func (r *rig) make(n, computes int) {
	var all []*slots.Slot
	for i := range n {
		o := options
		o.ID = i
		s, err := slots.New(r.dev, o)
		require.NoError(r.t, err)
		all = append(all, s)
	}
	r.ring = slots.NewRing(all, computes)
}

func (r *rig) stream(name string) *device.Stream {
	s, err := r.dev.NewStream(device.StreamOptions{Name: name})
	require.NoError(r.t, err)
	return s
}

// load takes the next slot and fills it with so many batches.
func (r *rig) load(batches int) *slots.Slot {
	s := r.ring.Next()
	require.NotNil(r.t, s)
	require.NoError(r.t, s.BeginWrite(r.copies))
	require.NoError(r.t, s.EndWrite(r.copies))
	s.Load(batches)
	return s
}

// use is UseLocked from outside.
func use(s *slots.Slot, of *slots.Uses, stream *device.Stream) error {
	s.Lock()
	defer s.Unlock()
	return s.UseLocked(of, stream)
}

// close gives all back, and what else there is of streams.
func (r *rig) close(streams ...*device.Stream) {
	require.NoError(r.t, r.dev.Synchronize(context.Background()))
	require.NoError(r.t, r.ring.Close())
	for _, s := range append(streams, r.copies) {
		require.NoError(r.t, s.Close())
	}
	require.NoError(r.t, r.dev.Close())
}

// Of a slot that holds two batches the first is back. Its compute stream has done all that
// it was given, and still counts as one with a batch in hand.
func TestAReadEndsWithTheSlotsLastBatch(t *testing.T) {
	r := newRig(t, 1, 2)
	a, b := r.stream("a"), r.stream("b")
	c := slots.Computes{Streams: []*device.Stream{a, b}}
	s := r.load(2)
	require.Same(t, a, c.Next(r.ring))
	require.NoError(t, s.Give(a))
	require.NoError(t, s.Give(a))
	require.Same(t, b, c.Next(r.ring), "a has two")
	none := slots.Uses{}
	require.NoError(t, r.ring.Return(s, &none, true))
	require.NoError(t, r.dev.Synchronize(t.Context()))
	require.Same(t, b, c.Next(r.ring), "a has one")
	require.Zero(t, r.ring.Free())
	require.NoError(t, r.ring.Return(s, &none, true))
	require.NoError(t, r.dev.Synchronize(t.Context()))
	require.Same(t, a, c.Next(r.ring))
	require.Equal(t, 1, r.ring.Free())
	r.close(a, b)
}

// A slot is held once the user has every batch in it that isn't back, and each counts once.
func TestASlotIsHeldOnceTheUserHasAllOfIt(t *testing.T) {
	r := newRig(t, 1, 1)
	s, none := r.load(3), slots.Uses{}
	require.False(t, r.ring.Held())
	s.Delivered()
	require.NoError(t, r.ring.Return(s, &none, true))
	require.False(t, r.ring.Held(), "two are to be delivered")
	require.NoError(t, r.ring.Return(s, &none, false))
	require.False(t, r.ring.Held(), "one is to be delivered")
	s.Delivered()
	require.True(t, r.ring.Held())
	require.NoError(t, r.ring.Return(s, &none, true))
	require.False(t, r.ring.Held())
	r.close()
}

// A stream takes the room of one, however often it uses a batch.
func TestAStreamsUsesOfABatchCountOnce(t *testing.T) {
	r := newRig(t, 1, 1)
	a, b, c := r.stream("a"), r.stream("b"), r.stream("c")
	s, uses := r.load(1), make(slots.Uses, 0, 2)
	for _, stream := range []*device.Stream{a, a, b, b, a} {
		require.NoError(t, use(s, &uses, stream))
	}
	require.ErrorIs(t, use(s, &uses, c), slots.ErrUses)
	require.NoError(t, r.ring.Return(s, &uses, true))
	require.Empty(t, uses)
	r.close(a, b, c)
}

// What one batch's use has left in doubt is in doubt for the slot, also where the batches
// that come back later have nothing to report. Renewed, it is as good as new.
func TestASlotThatHasFailedStaysOutOfUse(t *testing.T) {
	r := newRig(t, 1, 1)
	gone := r.stream("gone")
	s, uses := r.load(2), make(slots.Uses, 0, 1)
	require.NoError(t, use(s, &uses, gone))
	require.NoError(t, gone.Close())
	require.ErrorIs(t, r.ring.Return(s, &uses, true), device.ErrInvalid)
	require.NoError(t, r.ring.Return(s, &uses, true))
	require.Nil(t, r.ring.Next())
	require.Equal(t, []*slots.Slot{s}, r.ring.TakeFailed())
	require.Empty(t, r.ring.TakeFailed())
	require.NoError(t, s.Rest(t.Context()))
	s.Renew()
	r.ring.Back(s, false)

	require.Same(t, s, r.load(1))
	require.NoError(t, r.ring.Return(s, &uses, true))
	require.Equal(t, 1, r.ring.Free())
	r.close()
}

// A slot whose uses have ended isn't passed over: slots are taken in the order in which
// they came back. One whose use goes on is.
func TestASlotIsPassedOverWhileItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, over := range []bool{true, false} {
			r := newRig(t, 2, 1)
			other, uses := r.stream("other"), make(slots.Uses, 0, 1)
			first, second := r.load(1), r.load(1)
			require.NoError(t, use(first, &uses, other))
			gate := make(chan struct{})
			require.NoError(t, other.HostFunc(func() { <-gate }))
			if over {
				close(gate)
			}
			require.NoError(t, r.ring.Return(first, &uses, true))
			require.NoError(t, r.ring.Return(second, &uses, true))
			synctest.Wait()
			if over {
				require.Same(t, first, r.ring.Next())
			} else {
				require.Same(t, second, r.ring.Next())
				require.Same(t, first, r.ring.Next(), "there is no other")
				close(gate)
			}
			r.close(other)
		}
	})
}

// Who waits for a slot that compute streams have not done with is woken when they have, and
// not to look for nothing.
func TestAWatchedSlotWakesWhenItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, 2)
		a, b := r.stream("a"), r.stream("b")
		r.ring.StartWatching(t.Context())
		s, none := r.load(1), slots.Uses{}
		require.NoError(t, s.Give(a))
		gate := make(chan struct{})
		require.NoError(t, a.HostFunc(func() { <-gate }))
		require.NoError(t, r.ring.Return(s, &none, true))
		<-r.ring.Wake // it is back
		require.Nil(t, r.ring.Next())
		synctest.Wait()
		require.Empty(t, r.ring.Wake)
		close(gate)
		<-r.ring.Wake
		require.Same(t, s, r.ring.Next())
		r.ring.StopWatching()
		r.close(a, b)
	})
}

// Where memory is short New says so, and what it returns can be closed.
func TestThereIsNoMemoryForASlot(t *testing.T) {
	const limit = 1 << 16
	dev, err := cpu.Open(cpu.Options{MemoryBytes: limit, PinnedBytes: limit})
	require.NoError(t, err)
	before := dev.Usage()
	for _, onHost := range []bool{false, true} {
		o := options
		o.Bytes, o.OnHost = 2*limit, onHost
		s, err := slots.New(dev, o)
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		require.NoError(t, s.Close())
		require.Equal(t, before, dev.Usage())
	}
	require.NoError(t, dev.Close())
}

// That the slot's own device is closed is told, unlike that of a peer: nothing more can be
// had from the slot.
func TestTheSlotsDeviceIsClosed(t *testing.T) {
	r := newRig(t, 1, 1)
	compute := r.stream("compute")
	s, none := r.load(1), slots.Uses{}
	require.NoError(t, s.Give(compute))
	require.NoError(t, r.ring.Return(s, &none, true))
	require.NoError(t, r.dev.Synchronize(t.Context()))
	require.Error(t, r.dev.Close(), "the slot is left")
	require.ErrorIs(t, s.Rest(t.Context()), device.ErrClosed)
	require.ErrorIs(t, s.BeginWrite(r.copies), device.ErrClosed)
}
