//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"testing"
	"time"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
)

func TestAdoptStreamRefusesTheDefaultStreams(t *testing.T) {
	f, d := openFake(t, Options{})
	f.reset()
	for native, why := range map[uintptr]string{0: "nothing would overlap", 1: "nothing would overlap", 2: "goroutines move between threads"} {
		_, err := d.AdoptStream(native)
		require.ErrorIs(t, err, driver.ErrInvalid)
		require.ErrorContains(t, err, why)
	}
	require.Empty(t, f.callNames())
	f.foreign[0x500] = 0xbad
	_, err := d.AdoptStream(0x500)
	require.ErrorIs(t, err, driver.ErrInvalid)
	require.ErrorContains(t, err, "another device")
}

// Freeing an adopted stream leaves the native one; freeing one made here and
// adopted as well destroys it with its last user.
func TestAdoptedStreamsAreNotDestroyed(t *testing.T) {
	f, d := openFake(t, Options{})
	s, err := d.AdoptStream(0x500)
	require.NoError(t, err)
	require.NoError(t, d.CopyH2D(s, 1, []byte{1}))
	require.NoError(t, d.FreeStream(s))
	require.NotContains(t, f.callNames(), "cuStreamDestroy_v2")
	require.ErrorIs(t, d.CopyH2D(s, 1, []byte{1}), driver.ErrInvalid)

	own := newStream(t, d)
	again, err := d.AdoptStream(uintptr(own))
	require.NoError(t, err)
	require.Equal(t, own, again)
	require.NoError(t, d.FreeStream(own))
	require.NotContains(t, f.callNames(), "cuStreamDestroy_v2")
	require.NoError(t, d.FreeStream(again))
	require.Contains(t, f.callNames(), "cuStreamDestroy_v2")
}

func TestPrioritiesAreClamped(t *testing.T) {
	f, d := openFake(t, Options{})
	for asked, want := range map[int]int32{-9: -5, -5: -5, 0: 0, 4: 0} {
		f.reset()
		_, err := d.NewStream(driver.StreamConfig{Priority: asked, Name: "copy"})
		require.NoError(t, err)
		require.Equal(t, want, int32(f.recorded()[0].args[2]))
	}
	require.Contains(t, d.Properties().Notes, `stream "copy": priority -9 is out of the range from -5 (first) to 0 (last); it has -5`)
}

func TestNotesAreKeptOnceAndForwarded(t *testing.T) {
	_, d := openFake(t, Options{})
	var heard []string
	d.forwardNotes(func(s string) { heard = append(heard, s) })
	d.note("one")
	d.note("one")
	require.Equal(t, []string{"one"}, heard)
	require.Contains(t, d.Properties().Notes, "one")
}

func TestElapsed(t *testing.T) {
	f, d := openFake(t, Options{})
	s := newStream(t, d)
	plain, err := d.NewEvent(driver.EventConfig{Name: "plain"})
	require.NoError(t, err)
	a, b := newEvent(t, d), newEvent(t, d)
	_, err = d.Elapsed(plain, a)
	require.ErrorIs(t, err, driver.ErrNoTiming)
	require.ErrorContains(t, err, `"plain"`)
	_, err = d.Elapsed(a, b)
	require.ErrorIs(t, err, driver.ErrNotRecorded)
	require.NoError(t, d.Record(a, s))
	require.NoError(t, d.Record(b, s))
	f.fail("cuEventQuery", notReady)
	_, err = d.Elapsed(a, b)
	require.ErrorIs(t, err, driver.ErrNotComplete)
	f.fail("cuEventElapsedTime", notReady)
	_, err = d.Elapsed(a, b)
	require.ErrorIs(t, err, driver.ErrNotComplete)
	took, err := d.Elapsed(a, b)
	require.NoError(t, err)
	require.Equal(t, 1500*time.Microsecond, took)
}

func TestDone(t *testing.T) {
	f, d := openFake(t, Options{})
	s, e := newStream(t, d), newEvent(t, d)
	f.fail("cuStreamQuery", notReady)
	done, err := d.StreamDone(s)
	require.NoError(t, err)
	require.False(t, done)
	done, err = d.StreamDone(s)
	require.NoError(t, err)
	require.True(t, done)
	f.fail("cuEventQuery", notReady)
	done, err = d.EventDone(e)
	require.NoError(t, err)
	require.False(t, done)
}

// A caller whose context ends leaves at once; the wait ends with the work, and
// Close joins it.
func TestSynchronizeLeavesEarly(t *testing.T) {
	f, d := openFake(t, Options{})
	s := newStream(t, d)
	waiting, work := make(chan struct{}), make(chan struct{})
	f.fail("cuStreamQuery", notReady)
	f.does("cuStreamSynchronize", func([]uintptr) result {
		close(waiting)
		<-work
		return success
	})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- d.SynchronizeStream(ctx, s) }()
	<-waiting
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)

	closed := make(chan error)
	go func() { closed <- d.Close() }()
	select {
	case <-closed:
		t.Fatal("Close returned with a wait under way")
	default:
	}
	close(work)
	require.NoError(t, <-closed)
}

func TestSynchronizeWithAContextThatHasEnded(t *testing.T) {
	f, d := openFake(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.reset()
	require.ErrorIs(t, d.Synchronize(ctx), context.Canceled)
	require.Empty(t, f.callNames())
}

// Work that is done already costs neither a goroutine nor a blocking call.
func TestSynchronizeAsksFirst(t *testing.T) {
	f, d := openFake(t, Options{})
	s := newStream(t, d)
	f.reset()
	require.NoError(t, d.SynchronizeStream(t.Context(), s))
	require.Equal(t, []string{"cuStreamQuery"}, f.callNames())
	f.fail("cuStreamQuery", notReady)
	require.NoError(t, d.SynchronizeStream(context.Background(), s))
	require.Equal(t, []string{"cuStreamQuery", "cuStreamQuery", "cuStreamSynchronize"}, f.callNames())
}

// The driver calls one C function with a number, and the functions run in the
// order in which the driver calls it.
func TestHostFunctions(t *testing.T) {
	f, d := openFake(t, Options{})
	s := newStream(t, d)
	type queued struct{ fn, user uintptr }
	var queue []queued
	f.does("cuLaunchHostFunc", func(a []uintptr) result {
		queue = append(queue, queued{a[1], a[2]})
		return success
	})
	var ran []int
	for i := range 3 {
		require.NoError(t, d.HostFunc(s, func() { ran = append(ran, i) }))
	}
	for _, q := range queue {
		require.Equal(t, queue[0].fn, q.fn)
		purego.SyscallN(q.fn, q.user)
	}
	require.Equal(t, []int{0, 1, 2}, ran)
	purego.SyscallN(queue[0].fn, queue[0].user) // a number is good once
	require.Len(t, ran, 3)
	require.ErrorIs(t, d.HostFunc(s, nil), driver.ErrInvalid)

	f.does("cuLaunchHostFunc", func([]uintptr) result { return 400 })
	require.ErrorIs(t, d.HostFunc(s, func() {}), driver.ErrInvalid)
	require.Empty(t, hostFuncs.queued)
}
