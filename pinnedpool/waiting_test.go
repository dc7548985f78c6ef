package pinnedpool_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/pinnedpool"
)

// What comes back together wakes everybody for whom there is a buffer, one after the
// other, also where one of them gives up in between.
func TestAGroupThatComesBackWakesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), 3, slotBytes, pinnedpool.Options{Together: 3})
		r.uploadTogether(r.get(), r.get(), r.get())
		start := time.Now()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got := make(chan error)
		for i := range 4 {
			ctx := t.Context()
			if i == 0 {
				ctx = brief
			}
			go func() {
				b, err := r.pool.Get(ctx)
				if err == nil {
					time.Sleep(time.Minute)
					r.pool.Put(b)
				}
				got <- err
			}()
		}
		refused := 0
		for range 4 {
			if err := <-got; err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				refused++
			}
		}
		require.LessOrEqual(t, refused, 1)
		require.LessOrEqual(t, time.Since(start), time.Second+2*time.Minute)
		r.close()
	})
}

// Who waits sleeps while there is hope, whatever becomes of other buffers, and hears of it
// when there is none left.
func TestWhoWaitsSleepsUntilThereIsNoHope(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{})
			a, b, c := r.get(), r.get(), r.get()
			failed := make(chan error)
			wait := func() {
				_, err := r.pool.Get(t.Context())
				failed <- err
			}
			go wait()
			time.Sleep(time.Second)
			r.pool.Quarantine(a)
			time.Sleep(time.Second)
			go wait()
			time.Sleep(time.Second)
			want := pinnedpool.ErrExhausted
			if closed {
				want = pinnedpool.ErrClosed
				require.Error(t, r.pool.Close(t.Context()))
			} else {
				r.pool.Quarantine(b)
				time.Sleep(time.Second)
				r.pool.Quarantine(c)
			}
			for range 2 {
				require.ErrorIs(t, <-failed, want)
			}
			require.EqualValues(t, 2, r.pool.Stats().Waits)
			_, err := r.pool.Get(t.Context())
			require.ErrorIs(t, err, want)
			require.EqualValues(t, 2, r.pool.Stats().Waits, "it has not waited")
			require.True(t, r.pool.Readmit(a))
			r.pool.Put(a)
			for _, x := range []*pinnedpool.Buffer{b, c} {
				r.pool.Readmit(x)
				r.pool.Put(x)
			}
			r.close()
		})
	}
}

func TestTwoDrainsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), 2, slotBytes, pinnedpool.Options{})
		r.upload(r.get(), 1)
		drained := make(chan error)
		for range 3 {
			go func() { drained <- r.pool.Drain(t.Context()) }()
			synctest.Wait()
		}
		for range 3 {
			require.NoError(t, <-drained)
		}
		r.close()
	})
}

func TestPutAfterOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, 1, slotBytes, pinnedpool.Options{})
		r.pool.PutAfter()
		require.Zero(t, r.pool.Stats().InFlight)
		r.close()
	})
}

// Each bound of an option is told as that, and not as a lack of memory.
func TestBoundsOfOptionsAreTold(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	for option, make := range map[string]func() (*pinnedpool.Pool, error){
		"slots": func() (*pinnedpool.Pool, error) {
			return pinnedpool.New(dev, 1<<20+1, math.MaxInt64, pinnedpool.Options{})
		},
		"slotBytes": func() (*pinnedpool.Pool, error) { return pinnedpool.New(dev, 1, -1, pinnedpool.Options{}) },
		"MinSlots":  func() (*pinnedpool.Pool, error) { return pinnedpool.New(dev, 1, 1, pinnedpool.Options{MinSlots: -1}) },
		"Together": func() (*pinnedpool.Pool, error) {
			return pinnedpool.New(dev, 1, 1, pinnedpool.Options{Together: 1<<20 + 1})
		},
		"BudgetBytes": func() (*pinnedpool.Pool, error) {
			return pinnedpool.New(dev, 1, 1, pinnedpool.Options{BudgetBytes: -1})
		},
	} {
		_, err := make()
		var bad *pinnedpool.OptionError
		require.ErrorAs(t, err, &bad, option)
		require.Equal(t, option, bad.Option)
	}
	require.NoError(t, dev.Close())
}

// memories notes how host memory is asked for.
type memories struct {
	driver.Device
	asked []driver.HostConfig
}

func (d *memories) AllocHost(bytes int64, c driver.HostConfig) ([]byte, error) {
	d.asked = append(d.asked, c)
	return d.Device.AllocHost(bytes, c)
}

func TestMemoryIsLockedWhereThatIsAskedFor(t *testing.T) {
	for _, locked := range []bool{false, true} {
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		noted := &memories{Device: drv}
		dev := device.New(noted)
		pool, err := pinnedpool.New(dev, 1, slotBytes, pinnedpool.Options{Locked: locked, Pageable: true})
		require.NoError(t, err)
		require.Equal(t, locked, noted.asked[0].Locked)
		require.NoError(t, pool.Close(t.Context()))
		require.NoError(t, dev.Close())
	}
}

// Memory that could not be given back is still counted, and a buffer of a closed pool has
// no view.
func TestMemoryThatCouldNotBeGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, 2, slotBytes, pinnedpool.Options{})
		b := r.get()
		_, err := b.View()
		require.NoError(t, err)
		r.pool.Put(b)
		r.tap.Arm(devicetest.Rule{Op: devicetest.FreeHost, Nth: 1, Err: errBoom})
		require.ErrorIs(t, r.pool.Close(t.Context()), errBoom)
		require.Equal(t, int64(slotBytes), r.pool.Stats().Bytes)
		views := 0
		for i := range r.pool.Slots() {
			if _, err := r.pool.Buffer(i).View(); err == nil {
				views++
			}
		}
		require.LessOrEqual(t, views, 1)
	})
}

func TestErrorsSayWhatHappened(t *testing.T) {
	short := &pinnedpool.MemoryError{Slots: 3, SlotBytes: 5, Err: errBoom}
	require.ErrorContains(t, short, errBoom.Error())
	require.ErrorIs(t, short, errBoom)
	require.ErrorIs(t, short, device.ErrOutOfMemory)
	short.Err = nil
	require.ErrorIs(t, short, device.ErrOutOfMemory)
	require.NotContains(t, short.Error(), "nil")
	require.ErrorContains(t, &pinnedpool.OverwriteError{}, "was free")
	require.ErrorContains(t, &pinnedpool.OverwriteError{InFlight: true}, "was being copied")
}

// Anybody may ask at any time how the pool is.
func TestAPoolIsAskedWhileItWorks(t *testing.T) {
	r := newRig(t, cpu.Options{}, 4, slotBytes, pinnedpool.Options{})
	stop, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if s := r.pool.Stats(); s.Quarantined > 1 || r.pool.Doubtful() > 1 || s.Bytes > 4*slotBytes {
				panic("more than there is")
			}
		}
	}()
	for range 200 {
		r.pool.Doubt(r.get())
		r.pool.Recover()
		b := r.get()
		r.pool.Quarantine(b)
		require.True(t, r.pool.Readmit(b))
		r.upload(b, 1)
	}
	require.NoError(t, r.pool.Close(t.Context()))
	close(stop)
	<-asked
	require.Zero(t, r.pool.Stats().Bytes)
	r.close()
}
