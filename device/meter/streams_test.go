package meter_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/meter"
)

var errPush = errors.New("boom")

// gauges is a meter on a device with two streams, and each value shows which Push it is
// of.
type gauges struct {
	t          *testing.T
	tap        *devicetest.Tap
	dev        *device.Device
	slow, fast *device.Stream
	values     *device.Buffer // value i at 8*i
	meter      *meter.Meter[int64]
	pushed     []int64 // the value of each Push, from number 1
}

func newGauges(t *testing.T) *gauges {
	t.Helper()
	drv, err := cpu.New(cpu.Options{Model: &cpu.Model{CopyEngines: 2, ComputeEngines: 2}, Adversary: &cpu.Adversary{Poison: true, LateRead: true}})
	require.NoError(t, err)
	g := &gauges{t: t, tap: devicetest.NewTap(drv)}
	g.dev = device.New(g.tap)
	g.slow, err = g.dev.NewStream(device.StreamOptions{Name: "slow"})
	require.NoError(t, err)
	g.fast, err = g.dev.NewStream(device.StreamOptions{Name: "fast"})
	require.NoError(t, err)
	const n = 128
	g.values, err = g.dev.Alloc(8 * n)
	require.NoError(t, err)
	host := make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint64(host[8*i:], uint64(i))
	}
	require.NoError(t, g.fast.CopyH2D(g.values.View(), host))
	require.NoError(t, g.fast.Synchronize(t.Context()))
	g.meter, err = meter.New[int64](g.dev)
	require.NoError(t, err)
	return g
}

func (g *gauges) push(s *device.Stream, value int64) error {
	g.pushed = append(g.pushed, value)
	return g.meter.Push(s, g.values.View().Slice(8*value, 8))
}

func (g *gauges) mustPush(s *device.Stream, value int64) {
	g.t.Helper()
	require.NoError(g.t, g.push(s, value))
}

// shows requires that this value is the newest, and that its number is its Push's.
func (g *gauges) shows(want int64) {
	g.t.Helper()
	value, number, err := g.meter.Latest()
	require.NoError(g.t, err)
	if want == 0 {
		require.Zero(g.t, number)
		require.Zero(g.t, value)
		return
	}
	require.Equal(g.t, want, value)
	require.Equal(g.t, want, g.pushed[number-1])
}

// close requires that nothing is left of the meter.
func (g *gauges) close() {
	g.t.Helper()
	require.NoError(g.t, g.meter.Close())
	require.NoError(g.t, g.values.Close())
	usage := g.dev.Usage()
	require.Zero(g.t, usage.Events+usage.HostBuffers+usage.Buffers)
	require.NoError(g.t, g.slow.Close())
	require.NoError(g.t, g.fast.Close())
	require.NoError(g.t, g.dev.Close())
}

// A value that one stream makes late keeps its place, however often the others come
// round, and is shown only if nothing newer has arrived.
func TestEachPushShowsItsOwnValueFromTwoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		require.NoError(t, g.slow.Launch(cpu.Busy(time.Second)))
		g.mustPush(g.slow, 1)
		for v := int64(2); v <= 60; v++ {
			g.mustPush(g.fast, v)
			time.Sleep(time.Millisecond)
			g.shows(v)
		}
		require.NoError(t, g.fast.Launch(cpu.Busy(2*time.Second)))
		for v := int64(61); v <= 75; v++ {
			g.mustPush(g.fast, v)
		}
		g.mustPush(g.fast, 76) // is left out: 16 are under way, one of them the slow stream's
		time.Sleep(time.Second)
		g.shows(60)
		g.mustPush(g.slow, 77) // its number is behind those of fast's, and it arrives before them
		time.Sleep(time.Millisecond)
		g.shows(77)
		require.NoError(t, g.fast.Synchronize(t.Context()))
		g.shows(77)
		for v := int64(78); v < 100; v++ {
			g.mustPush(g.slow, v)
			time.Sleep(time.Millisecond)
			g.shows(v)
		}
		g.close()
	})
}

// A Push that fails in its copy or its Record is counted and shown by nobody, and
// costs no place for good.
func TestAFailedPushIsNotShown(t *testing.T) {
	for _, op := range []devicetest.Op{devicetest.CopyD2H, devicetest.Record} {
		synctest.Test(t, func(t *testing.T) {
			g := newGauges(t)
			g.mustPush(g.fast, 1)
			time.Sleep(time.Millisecond)
			g.shows(1)
			for v := int64(2); v < 60; v++ {
				g.tap.Arm(devicetest.Rule{Op: op, Nth: 1, Err: errPush})
				require.ErrorIs(t, g.push(g.slow, 100), errPush)
				g.tap.Disarm()
				time.Sleep(time.Millisecond)
				g.shows(v - 1)
				g.mustPush(g.fast, v)
				time.Sleep(time.Millisecond)
				g.shows(v)
			}
			g.close()
		})
	}
}

// While the stream of failed Pushes is busy and takes no Record, their places are not
// used: the copies may still write to them. Close waits for them too.
func TestAFailedPushKeepsItsPlaceUntilItsCopyIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		require.NoError(t, g.slow.Launch(cpu.Busy(time.Second)))
		g.tap.Arm(devicetest.Rule{Op: devicetest.Record, Stream: "slow", Err: errPush})
		for range 16 {
			require.ErrorIs(t, g.push(g.slow, 100), errPush)
		}
		g.mustPush(g.fast, 1) // is left out
		require.NoError(t, g.fast.Synchronize(t.Context()))
		g.shows(0)
		start := time.Now()
		g.close()
		require.Equal(t, time.Second, time.Since(start).Truncate(time.Millisecond))
	})
}

// A Push of what is not the meter's is refused, and leaves nothing behind.
func TestAMeterRefusesWhatIsNotItsOwn(t *testing.T) {
	g := newGauges(t)
	other, err := cpu.Open(cpu.Options{Index: 1})
	require.NoError(t, err)
	s, err := other.NewStream(device.StreamOptions{Name: "far"})
	require.NoError(t, err)
	memory, err := other.Alloc(8)
	require.NoError(t, err)
	for _, c := range []struct {
		stream *device.Stream
		view   device.View
		want   string
	}{
		{s, g.values.View().Slice(0, 8), `stream "far" is of cpu:1`},
		{nil, g.values.View().Slice(0, 8), "the stream is nil"},
		{g.fast, g.values.View().Slice(0, 7), "7 bytes, want the meter's 8"},
		{g.fast, device.View{}, "0 bytes, want the meter's 8"},
		{g.fast, memory.View(), "cpu:1"},
	} {
		err := g.meter.Push(c.stream, c.view)
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
	g.shows(0)
	require.NoError(t, g.meter.Push(g.fast, g.values.View().Slice(8, 8)))
	require.NoError(t, g.fast.Synchronize(t.Context()))
	value, number, err := g.meter.Latest()
	require.NoError(t, err)
	require.EqualValues(t, 1, value)
	require.EqualValues(t, 6, number, "those that failed are counted")
	require.NoError(t, memory.Close())
	g.close()
	require.NoError(t, s.Close())
	require.NoError(t, other.Close())
}

// Several goroutines push what tells its number, others read, and one closes.
func TestAMeterIsForSeveralGoroutines(t *testing.T) {
	g := newGauges(t)
	var wg sync.WaitGroup
	var pushing sync.Mutex
	var pushed []int64
	for i, s := range []*device.Stream{g.slow, g.fast, g.slow, g.fast} {
		wg.Go(func() {
			for v := int64(0); ; v++ {
				value := (v*4 + int64(i)) % 128
				pushing.Lock() // so that the test knows the number
				pushed = append(pushed, value)
				err := g.meter.Push(s, g.values.View().Slice(8*value, 8))
				pushing.Unlock()
				if errors.Is(err, device.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	enough := make(chan struct{})
	for i := range 3 {
		wg.Go(func() {
			for last, n := int64(0), 0; ; n++ {
				value, number, err := g.meter.Latest()
				if errors.Is(err, device.ErrClosed) {
					return
				}
				want := int64(0)
				if number > 0 {
					pushing.Lock()
					want = pushed[number-1]
					pushing.Unlock()
				}
				if err != nil || number < last || value != want {
					t.Errorf("Push %d behind %d: %v, want %d, %v", number, last, value, want, err)
					return
				}
				if last = number; n == 200 && i == 0 {
					close(enough)
				}
			}
		})
	}
	<-enough
	for range 2 {
		wg.Go(func() {
			if err := g.meter.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	g.close()
}

// Close waits for five seconds; what is under way then is freed when it is done, and
// every other Close gets the same error at the same time.
func TestAMetersCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		require.NoError(t, g.slow.Launch(cpu.Busy(time.Minute)))
		g.mustPush(g.slow, 1)
		start := time.Now()
		var wg sync.WaitGroup
		var errs [2]error
		for i := range errs {
			wg.Go(func() {
				errs[i] = g.meter.Close()
				require.Equal(t, 5*time.Second, time.Since(start))
			})
		}
		wg.Wait()
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.Same(t, errs[0], errs[1])
		require.EqualValues(t, 1, g.dev.Usage().HostBuffers)
		_, _, err := g.meter.Latest()
		require.ErrorIs(t, err, device.ErrClosed)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, g.dev.Usage().HostBuffers)
	})
}

func TestReadingAMeterAllocatesNothing(t *testing.T) {
	g := newGauges(t)
	step := func() {
		if err := g.meter.Push(g.fast, g.values.View().Slice(0, 8)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.meter.Latest(); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		step()
	}
	require.Less(t, testing.AllocsPerRun(1000, step), 0.1)
	g.close()
}

// A Push to a stream that is closed leaves nothing behind: others are taken, and Close
// frees all.
func TestAMeterOutlivesAClosedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges(t)
		gone, err := g.dev.NewStream(device.StreamOptions{Name: "gone"})
		require.NoError(t, err)
		require.NoError(t, gone.Close())
		for range 40 {
			require.ErrorIs(t, g.push(gone, 100), device.ErrInvalid)
		}
		g.mustPush(g.fast, 1)
		require.NoError(t, g.fast.Synchronize(t.Context()))
		g.shows(1)
		require.NoError(t, g.meter.Close())
		require.Zero(t, g.dev.Usage().HostBuffers)
	})
}

// A second Close does nothing, and what comes behind it says that the meter is closed.
func TestAClosedMeter(t *testing.T) {
	g := newGauges(t)
	g.mustPush(g.fast, 1)
	require.NoError(t, g.meter.Close())
	require.NoError(t, g.meter.Close())
	require.EqualError(t, g.push(g.fast, 1), "meter: closed")
	_, _, err := g.meter.Latest()
	require.ErrorIs(t, err, device.ErrClosed)
	g.close()
}

// A device that is closed first leaves nothing to free, and one thing to say.
func TestClosingTheDeviceFirstIsOneSentence(t *testing.T) {
	g := newGauges(t)
	require.Error(t, g.dev.Close())
	err := g.meter.Close()
	require.ErrorIs(t, err, device.ErrClosed)
	require.ErrorContains(t, err, "meter: Close: close a Meter before its device: cpu")
	require.NotContains(t, err.Error(), "\n")
	require.NoError(t, g.meter.Close())
}
