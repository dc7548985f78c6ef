package cpu_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// read is a kernel that copies its input to its output, as checksums and models
// read a batch.
var read = &device.Kernel{
	Name: "read",
	Go:   func(a *device.Args) { copy(a.Bytes(1), a.Bytes(0)) },
}

func reading(in, out device.View) *device.Launch {
	l := &device.Launch{Kernel: read, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	in.In(&l.Args)
	out.Out(&l.Args)
	return l
}

// edges says which of the protocol's three edges a test leaves out.
type edges struct{ ready, consumed, copied bool }

// twoBatches sends two batches through one host slot and one device slot and
// returns what the kernels read, or the first error.
func twoBatches(r *rig, keep edges) (results [2][]byte, err error) {
	up, compute := r.stream("upload"), r.stream("compute")
	ready, consumed, copied := r.event("ready"), r.event("consumed"), r.event("copied")
	slot, host := r.buffer(64), r.hostBuffer(64)
	outs := []device.View{r.buffer(64), r.buffer(64)}
	results = [2][]byte{r.hostBuffer(64), r.hostBuffer(64)}
	try := func(errs ...error) { err = errors.Join(append([]error{err}, errs...)...) }
	for i, out := range outs {
		if keep.copied {
			try(copied.Synchronize(background))
		} else if i > 0 {
			time.Sleep(ms) // an impatient producer: the first copy is under way
		}
		copy(host, filled(byte(i+1), 64))
		if keep.consumed && i > 0 {
			try(up.Wait(consumed))
		}
		try(up.CopyH2D(slot, host), up.Record(copied), up.Record(ready))
		if keep.ready {
			try(compute.Wait(ready))
		}
		try(compute.Launch(reading(slot, out)), compute.Record(consumed))
	}
	try(r.Synchronize(background))
	for i, out := range outs {
		try(compute.CopyD2H(results[i], out))
	}
	try(compute.Synchronize(background))
	return results, err
}

var careful = edges{ready: true, consumed: true, copied: true}

func slowModel() *cpu.Model {
	m := fixed(4*ms, ms)
	m.KernelTime = func(*device.Launch) time.Duration { return 4 * ms }
	return m
}

// devices are the two ways to be unkind: by the model's clock, and by delaying
// real work.
func devices(a cpu.Adversary) map[string]cpu.Options {
	slow := a
	slow.Delay = 4 * ms
	return map[string]cpu.Options{
		"modelled": {Model: slowModel(), Adversary: &a},
		"plain":    {Adversary: &slow},
	}
}

// Whoever keeps all edges sees no difference, whatever the dice.
func TestCarefulCallerIsUnharmed(t *testing.T) {
	for seed := range uint64(30) {
		a := cpu.Adversary{Seed: seed, Poison: true, LateRead: true, CheckInputs: true, Delay: 4 * ms, Reorder: true}
		for name, o := range devices(a) {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, o)
				got, err := twoBatches(r, careful)
				require.NoError(t, err, name)
				require.Equal(t, [2][]byte{filled(1, 64), filled(2, 64)}, got, name)
				r.close()
			})
		}
	}
}

// Each edge left out shows: in the data or as a race. On a plain device it takes
// luck, which the seeds provide.
func TestMissingEdgeShows(t *testing.T) {
	for name, keep := range map[string]edges{
		"ready":    {consumed: true, copied: true},
		"consumed": {ready: true, copied: true},
		"copied":   {ready: true, consumed: true},
	} {
		for way := range devices(cpu.Adversary{}) {
			t.Run(name+"/"+way, func(t *testing.T) {
				if raceEnabled && way == "plain" {
					t.Skip("the race detector sees it too, and fails the test")
				}
				const seeds = 20
				caught := 0
				for seed := range uint64(seeds) {
					a := cpu.Adversary{Seed: seed, Poison: true, LateRead: true, CheckInputs: true}
					synctest.Test(t, func(t *testing.T) {
						r := open(t, devices(a)[way])
						got, err := twoBatches(r, keep)
						if err != nil {
							require.ErrorAs(t, err, new(*cpu.Race))
						}
						if err != nil || string(got[0]) != string(filled(1, 64)) || string(got[1]) != string(filled(2, 64)) {
							caught++
						}
						r.close()
					})
				}
				if way == "modelled" {
					require.Equal(t, seeds, caught)
				} else {
					require.Greater(t, caught, seeds/2)
				}
			})
		}
	}
}

// Poison and late reads alone show what luck would hide: a slot overwritten under
// its reader, a source overwritten under its copy.
func TestMissingEdgeShowsInTheData(t *testing.T) {
	for name, keep := range map[string]edges{
		"consumed": {ready: true, copied: true},
		"copied":   {ready: true, consumed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, cpu.Options{Model: slowModel(), Adversary: &cpu.Adversary{Poison: true}})
				got, err := twoBatches(r, keep)
				require.NoError(t, err)
				require.NotEqual(t, [2][]byte{filled(1, 64), filled(2, 64)}, got)
				r.close()
			})
		})
	}
}

// The reader of a slot whose copy isn't done reads poison, not what luck left.
func TestPoison(t *testing.T) {
	for way, o := range devices(cpu.Adversary{Poison: true, LateRead: true}) {
		if raceEnabled && way == "plain" {
			continue // the race detector sees it too, and fails the test
		}
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, o)
				fresh, host, out := r.buffer(64), r.hostBuffer(64), r.hostBuffer(64)
				s, other := r.stream("s"), r.stream("other")
				r.do(s.CopyD2H(out, fresh), s.Synchronize(background))
				require.Equal(t, filled(cpu.PoisonByte, 64), out, "fresh memory")

				r.do(s.Memset(fresh, 1), s.Synchronize(background))
				r.do(s.CopyH2D(fresh, host), other.CopyD2H(out, fresh), other.Synchronize(background))
				require.Equal(t, filled(cpu.PoisonByte, 64), out, "a copy under way")
				r.do(r.Synchronize(background))
				r.close()
			})
		})
	}
}

// An input that changes under its reader is named.
func TestCheckInputs(t *testing.T) {
	for way, o := range devices(cpu.Adversary{Seed: 3, CheckInputs: true, LateRead: true, Poison: true}) {
		if raceEnabled && way == "plain" {
			continue // the race detector sees it too, and fails the test
		}
		t.Run("consumed/"+way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, o)
				up, compute := r.stream("upload"), r.stream("compute")
				slot, out, host := r.buffer(64), r.buffer(64), r.hostBuffer(64)
				r.do(up.Memset(slot, 1), up.Synchronize(background))
				r.do(compute.Launch(reading(slot, out)), up.CopyH2D(slot, host))
				err := r.Synchronize(background)
				require.ErrorIs(t, err, device.ErrFault)
				var race *cpu.Race
				require.ErrorAs(t, err, &race)
				require.Equal(t, cpu.Race{Argument: 0, Bytes: 64}, *race)
				var fault *cpu.Fault
				require.ErrorAs(t, err, &fault)
				require.Equal(t, []string{"Launch", "read", "compute"}, []string{fault.Op, fault.Kernel, fault.Stream})
				r.close()
			})
		})
		t.Run("copied/"+way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, o)
				_, err := twoBatches(r, edges{ready: true, consumed: true})
				var race *cpu.Race
				require.ErrorAs(t, err, &race)
				require.Equal(t, cpu.Race{Argument: -1, Bytes: 64}, *race)
				require.ErrorContains(t, err, "upload")
				r.close()
			})
		})
	}
}

func TestDelaysDependOnSeedAlone(t *testing.T) {
	took := func(seed uint64) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			r := open(t, cpu.Options{Model: fixed(ms, ms), Adversary: &cpu.Adversary{Seed: seed, Delay: 3 * ms}})
			for range 5 {
				s := r.stream("s")
				r.in(s)
				r.out(s)
			}
			r.do(r.Synchronize(background))
			d = time.Since(r.opened)
			r.close()
		})
		return d
	}
	different := make(map[time.Duration]bool)
	for seed := range uint64(10) {
		d := took(seed)
		require.Equal(t, d, took(seed))
		require.GreaterOrEqual(t, d, 6*ms)
		require.LessOrEqual(t, d, 6*4*ms)
		different[d] = true
	}
	require.Len(t, different, 10)
}

func TestReorderKeepsStreamsInOrder(t *testing.T) {
	orders := make(map[string]bool)
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := open(t, cpu.Options{Model: fixed(ms, 0), Adversary: &cpu.Adversary{Seed: seed, Reorder: true}})
			var events [3][2]*device.Event
			for i := range events {
				s := r.stream("s")
				for j := range 2 {
					events[i][j] = r.event("e")
					r.in(s)
					r.do(s.Record(events[i][j]))
				}
			}
			r.do(r.Synchronize(background))
			require.Equal(t, 6*ms, time.Since(r.opened), "no time is lost")
			order := ""
			for _, e := range events {
				first, err := device.Elapsed(events[0][0], e[0])
				r.do(err)
				second, err := device.Elapsed(events[0][0], e[1])
				r.do(err)
				require.Less(t, first, second)
				order += fmt.Sprint(first, second, " ")
			}
			orders[order] = true
			r.close()
		})
	}
	require.Greater(t, len(orders), 10)
}

var errInjected = errors.New("injected")

// Every call of a small protocol fails in turn. The error comes back from that
// call, marked as nobody's fault but the driver's; the device is well afterwards.
func TestFailEachCall(t *testing.T) {
	protocol := func(dev *device.Device) error {
		var errs []error
		keep := func(err error) { errs = append(errs, err) }
		s, err := dev.NewStream(device.StreamOptions{Name: "s"})
		keep(err)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		b, err := dev.Alloc(64)
		keep(err)
		if err != nil {
			return err
		}
		defer func() { _ = b.Close() }()
		keep(s.Memset(b.View(), 1))
		keep(s.CopyD2D(b.View(), b.View()))
		keep(s.HostFunc(func() {}))
		keep(s.Launch(cpu.Busy(0)))
		for s.Synchronize(background) != nil { // tried again, so that Free may follow
			keep(errInjected)
		}
		return errors.Join(errs...)
	}
	calls := 0
	for k := 1; ; k++ {
		hit := false
		synctest.Test(t, func(t *testing.T) {
			dev, err := cpu.Open(cpu.Options{Adversary: &cpu.Adversary{Fail: func(c cpu.Call) error {
				if c.N == int64(k) && c.Op != "Free" && c.Op != "FreeStream" && c.Op != "Close" {
					hit = true
					return errInjected
				}
				return nil
			}}})
			require.NoError(t, err)
			err = protocol(dev)
			require.Equal(t, hit, errors.Is(err, errInjected), "%v", err)
			require.NoError(t, protocol(dev), "the device is well")
			require.NoError(t, dev.Close())
		})
		if !hit && calls > 0 {
			break
		}
		calls++
	}
	require.Equal(t, 7, calls)
}

// The work of each call in turn ends the device. Whoever waits gets the error,
// host functions after it don't run, and everything can be freed.
func TestFaultEachOperation(t *testing.T) {
	for way, o := range map[string]cpu.Options{"plain": {}, "modelled": {Model: slowModel()}} {
		for k := 1; k <= 5; k++ {
			t.Run(fmt.Sprintf("%s/%d", way, k), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					seen := 0
					o.Adversary = &cpu.Adversary{Fault: func(c cpu.Call) error {
						if c.Op == "Record" || c.Op == "Wait" {
							return nil
						}
						if seen++; seen == k {
							return errInjected
						}
						return nil
					}}
					r := open(t, o)
					s, other, e := r.stream("s"), r.stream("other"), r.event("e")
					ran := false
					for _, err := range []error{
						s.CopyH2D(r.buf, r.host), s.Launch(cpu.Busy(ms)), s.Memset(r.buf, 1), s.HostFunc(func() {}), s.CopyD2H(r.host, r.buf),
						s.HostFunc(func() { ran = true }), s.Record(e), other.Wait(e), other.HostFunc(func() { ran = true }),
					} {
						if err != nil { // the work before may have failed by now
							require.ErrorIs(t, err, device.ErrFault)
							require.ErrorIs(t, err, errInjected)
						}
					}

					for name, err := range map[string]error{
						"event":  e.Synchronize(background),
						"stream": other.Synchronize(background),
						"device": r.Synchronize(background),
						"record": s.Record(e),
						"copy":   s.CopyH2D(r.buf, r.host),
					} {
						require.ErrorIs(t, err, device.ErrFault, name)
						require.ErrorIs(t, err, errInjected, name)
						var d *device.Error
						require.ErrorAs(t, err, &d)
						require.True(t, d.Async || name == "event" && d.Op == "SynchronizeEvent", name)
					}
					_, err := e.Done()
					require.ErrorIs(t, err, device.ErrFault)
					require.False(t, ran)
					r.close()
				})
			})
		}
	}
}
