package order_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/order"
)

func TestAReportNamesBothSidesAndTheEdge(t *testing.T) {
	r := newRig(t, order.Options{})
	up, compute, copied := r.stream("up"), r.stream("compute"), r.event("copied")
	v, h := r.buffer(256), r.pinned(256)
	v.Describe(func(offset, bytes int64) (name, hint string) {
		return fmt.Sprintf("the weights from %d to %d", offset, offset+bytes), "wait before you read"
	})
	r.do(up.CopyH2D(v.View(), h.Bytes()))
	early := r.reported(reads(compute, v.View().Slice(64, 32)))
	require.Empty(t, early.Event)
	require.Contains(t, early.Missing, "no event was recorded")

	r.do(up.Record(copied), up.Record(r.event("later")))
	report := r.reported(reads(compute, v.View().Slice(64, 32)))
	require.Equal(t, order.Access{Op: "CopyH2D", Write: true, Stream: "up", Device: "fake:0", Memory: "the weights from 64 to 96",
		Place: report.First.Place}, report.First)
	require.Equal(t, order.Access{Op: "Launch", Kernel: "any", Stream: "compute", Device: "fake:0", Memory: "the weights from 64 to 96",
		Place: report.Second.Place, Caller: report.Second.Caller}, report.Second)
	require.Contains(t, report.First.Place, "order/order_test.go:")
	require.Contains(t, report.Second.Place, "order/rig_test.go:")
	require.Equal(t, []int64{64, 32}, []int64{report.Offset, report.Bytes})
	require.Equal(t, "copied", report.Event)
	require.Contains(t, report.Missing, `stream "compute" of fake:0 has not waited for event "copied", recorded behind that at order/order_test.go:`)
	require.Equal(t, "wait before you read", report.Hint)
	require.NotContains(t, report.Error(), "\n")
	require.Len(t, r.checker.Reports(), 2, "another read is another place")

	r.do(compute.Wait(copied), reads(compute, v.View()))
	require.Len(t, r.checker.Reports(), 2)
}

// A stream without a name is not taken for the host, on either side.
func TestAReportTellsAnUnnamedStreamFromTheHost(t *testing.T) {
	const unnamed = "on an unnamed stream of fake:0 (name it by StreamOptions.Name)"
	r := newRig(t, order.Options{})
	up, compute := r.stream(""), r.stream("")
	v, h := r.buffer(256), r.pinned(256)
	r.do(up.CopyH2D(v.View(), h.Bytes()))
	report := r.reported(reads(compute, v.View()))
	require.False(t, report.First.Host || report.Second.Host)
	require.ErrorContains(t, report, "Launch of any "+unnamed)
	require.ErrorContains(t, report, "CopyH2D "+unnamed)
	require.Contains(t, report.Missing, "an unnamed stream of fake:0 has waited for nothing else")
	require.NotContains(t, report.Error(), "the host")

	r.do(up.Record(r.event("")))
	report = r.reported(r.dev.HostWrites(h.Bytes()))
	require.False(t, report.First.Host)
	require.True(t, report.Second.Host)
	require.ErrorContains(t, report, "HostWrites by the host")
	require.ErrorContains(t, report, "CopyH2D "+unnamed)
	require.Contains(t, report.Missing, "the host has not waited for an unnamed event, recorded behind that")
}

// Only what was waited for orders: not what is submitted first, nor a copy that may
// block its caller, nor a wait for what was never recorded, for an earlier Record, or
// for another stream's.
func TestWhatOrdersNothing(t *testing.T) {
	for name, between := range map[string]func(r *rig, a, b *device.Stream){
		"submission": func(*rig, *device.Stream, *device.Stream) {},
		"a copy from memory that is not pinned": func(r *rig, a, _ *device.Stream) {
			r.do(a.CopyH2D(r.buffer(64).View(), make([]byte, 64)))
		},
		"a copy to memory that is not pinned": func(r *rig, a, _ *device.Stream) {
			r.do(a.CopyD2H(make([]byte, 64), r.buffer(64).View()))
		},
		"allocating and freeing": func(r *rig, _, _ *device.Stream) {
			r.do(r.buffer(64).Close(), r.pinned(64).Close())
		},
		"another stream's end": func(r *rig, _, b *device.Stream) { r.do(b.Synchronize(ctx)) },
		"a wait for an earlier Record": func(r *rig, a, b *device.Stream) {
			e := r.event("e")
			r.do(b.Record(e), b.Wait(e), a.Record(e))
		},
		"a wait for what was never recorded": func(r *rig, _, b *device.Stream) {
			if !invariantsOn { // there it is an error
				r.do(b.Wait(r.event("e")))
			}
		},
		"a wait on a third stream": func(r *rig, a, _ *device.Stream) {
			e := r.event("e")
			r.do(a.Record(e), r.stream("c").Wait(e))
		},
		"an idle stream, asked for a hint": func(r *rig, a, _ *device.Stream) {
			r.drv.done = true
			_, err := a.Idle()
			r.do(err)
		},
		"an event that is not done": func(r *rig, a, _ *device.Stream) {
			e := r.event("e")
			r.do(a.Record(e))
			_, err := e.Done()
			r.do(err)
		},
		"a witness that tells nobody": func(r *rig, a, _ *device.Stream) {
			e, err := r.dev.NewEvent(device.EventOptions{Witness: r.dev.NewWitness()})
			r.do(err, a.Record(e), e.Synchronize(ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, order.Options{})
			a, b, v := r.stream("a"), r.stream("b"), r.buffer(64)
			r.do(writes(a, v.View()))
			between(r, a, b)
			r.reported(reads(b, v.View()))
			r.reported(writes(b, v.View()))
			r.do(writes(a, v.View()))
		})
	}
}

func TestWhatOrders(t *testing.T) {
	done := func(b bool, err error) error {
		if err == nil && !b {
			err = errors.New("not done")
		}
		return err
	}
	for name, between := range map[string]func(r *rig, a, b *device.Stream){
		"a wait": func(r *rig, a, b *device.Stream) {
			e := r.event("e")
			r.do(a.Record(e), b.Wait(e))
		},
		"a wait for a freed event's Record": func(r *rig, a, b *device.Stream) {
			e := r.event("e")
			r.do(a.Record(e), b.Wait(e), e.Close())
		},
		"a wait by way of a third": func(r *rig, a, b *device.Stream) {
			c, e, f := r.stream("c"), r.event("e"), r.event("f")
			r.do(a.Record(e), c.Wait(e), c.Record(f), b.Wait(f))
		},
		"a junction": func(r *rig, a, b *device.Stream) {
			j, err := r.dev.NewJunction()
			r.do(err, j.Join(b, r.stream("c"), a))
		},
		"synchronising the event": func(r *rig, a, _ *device.Stream) {
			e := r.event("e")
			r.do(a.Record(e), e.Synchronize(ctx))
		},
		"synchronising the stream": func(r *rig, a, _ *device.Stream) { r.do(a.Synchronize(ctx)) },
		"synchronising the device": func(r *rig, _, _ *device.Stream) { r.do(r.dev.Synchronize(ctx)) },
		"synchronising the device when the stream is closed": func(r *rig, a, _ *device.Stream) {
			r.do(a.Close(), r.dev.Synchronize(ctx))
		},
		"the event is done": func(r *rig, a, _ *device.Stream) {
			e := r.event("e")
			r.drv.done = true
			r.do(a.Record(e), done(e.Done()))
		},
		"the stream is done": func(r *rig, a, _ *device.Stream) {
			r.drv.done = true
			r.do(done(a.Done()))
		},
		"a host function behind it has run": func(r *rig, a, _ *device.Stream) {
			r.do(a.HostFunc(func() {}))
			r.drv.funcs()
		},
		"one goroutine synchronises and tells another": func(r *rig, a, _ *device.Stream) {
			told := make(chan error)
			go func() { told <- a.Synchronize(ctx) }()
			r.do(<-told)
		},
		"a witness that tells": func(r *rig, a, _ *device.Stream) {
			w := r.dev.NewWitness()
			e, err := r.dev.NewEvent(device.EventOptions{Witness: w})
			r.do(err, a.Record(e), e.Synchronize(ctx))
			w.Tell()
		},
		"the same stream by another handle": func(r *rig, a, b *device.Stream) {
			again, err := r.dev.StreamFromHandle(uintptr(a.Handle()))
			e := r.event("e")
			r.do(err, again.Record(e), b.Wait(e))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, order.Options{})
			a, b, v := r.stream("a"), r.stream("b"), r.buffer(64)
			r.do(writes(a, v.View()))
			between(r, a, b)
			r.do(reads(b, v.View()), writes(b, v.View()))
			require.NoError(t, r.checker.Err())
		})
	}
}

// A handle of another library's stream that is taken again is the same stream, whether
// or not the driver gives both one handle; another native stream is another.
func TestAdoptedStreams(t *testing.T) {
	for _, oneHandle := range []bool{false, true} {
		t.Run(fmt.Sprintf("oneHandle=%v", oneHandle), func(t *testing.T) {
			r := newRig(t, order.Options{})
			r.drv.oneHandle = oneHandle
			v := r.buffer(64)
			adopt := func(native uintptr) *device.Stream {
				s, err := r.dev.StreamFromHandle(native)
				r.do(err)
				return s
			}
			s := adopt(1 << 20)
			r.do(writes(s, v.View()), s.Close())
			s = adopt(1 << 20)
			r.do(writes(s, v.View()))
			other := adopt(1<<20 + 8)
			require.Equal(t, "native 0x100000", r.reported(writes(other, v.View())).First.Stream)

			own := r.stream("own")
			r.do(s.Synchronize(ctx), writes(own, v.View()))
			again := adopt(uintptr(own.Handle()))
			r.do(writes(again, v.View()), again.Close(), r.dev.Synchronize(ctx), writes(own, v.View()))
			require.Equal(t, "own", r.reported(writes(other, v.View())).First.Stream)
			again = adopt(uintptr(own.Handle()))
			r.do(own.Close(), writes(again, v.View()), again.Close())
			r.reported(v.Close())
		})
	}
}

func TestPeersAreJudgedTogether(t *testing.T) {
	for _, tapped := range []bool{false, true} {
		for _, missing := range []string{"", "wait", "record"} {
			t.Run(fmt.Sprintf("tapped=%v/%s", tapped, missing), func(t *testing.T) {
				here := newRig(t, order.Options{})
				there := here.beside()
				if tapped {
					here.dev = device.New(devicetest.NewTap(here.dev.Driver()))
					there.dev = device.New(devicetest.NewTap(there.dev.Driver()))
				}
				up, remote := here.stream("up"), there.stream("remote")
				ready, v, w := here.event("ready"), here.buffer(64), there.buffer(64)
				r := here
				r.do(writes(up, v.View()))
				if missing != "record" {
					r.do(up.Record(ready))
				}
				if missing != "wait" && missing != "record" {
					r.do(remote.Wait(ready))
				}
				err := remote.CopyPeer(w.View(), v.View())
				if missing == "" {
					r.do(err)
					return
				}
				report := r.reported(err)
				require.Equal(t, []string{"fake:0", "fake:1"}, []string{report.First.Device, report.Second.Device})
				require.Equal(t, missing == "wait", report.Event == "ready")
			})
		}
	}
}

// Pinned memory is the same where the host, a copy and a kernel see it by their own
// addresses.
func TestPinnedMemoryHasTwoAddresses(t *testing.T) {
	mine := make([]byte, 128)
	for name, pin := range map[string]func(r *rig) *device.HostBuffer{
		"allocated": func(r *rig) *device.HostBuffer { return r.pinned(128) },
		"registered": func(r *rig) *device.HostBuffer {
			h, err := r.dev.RegisterHost(mine, device.HostOptions{})
			r.do(err)
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, order.Options{})
			a, b, v, h := r.stream("a"), r.stream("b"), r.buffer(64), pin(r)
			part, err := r.dev.Driver().HostAddress(h.Bytes()[32:]) // tells where all of it is
			r.do(err)
			seen := r.dev.ViewOf(part-32, 128)
			r.do(writes(a, seen.Slice(32, 64)))
			r.reported(b.CopyH2D(v.View(), h.Bytes()[64:128]))
			r.do(b.CopyH2D(v.View().Slice(0, 32), h.Bytes()[96:128]))
			r.reported(r.dev.HostReads(h.Bytes()))
			r.reported(reads(b, seen))
			r.do(a.Synchronize(ctx), r.dev.HostReads(h.Bytes()), reads(b, seen))
			r.reported(r.dev.HostWrites(h.Bytes()))
			r.reported(h.Close())
			r.do(b.Synchronize(ctx), r.dev.HostWrites(h.Bytes()), h.Close())
		})
	}
}

// What is submitted past the calls is declared.
func TestWorkByOtherMeans(t *testing.T) {
	r := newRig(t, order.Options{})
	a, b, v := r.stream("a"), r.stream("b"), r.buffer(64)
	r.do(a.Uses(v.View(), device.Out))
	require.Equal(t, "Uses", r.reported(b.Uses(v.View(), device.In)).First.Op)
	r.reported(reads(b, v.View()))
	r.do(a.Uses(v.View(), device.InOut), r.dev.HostReads(make([]byte, 8)))
}

// What a Witness has seen is good for the memory that it passes on, and for nothing
// else.
func TestAWitnessPassesOnMemory(t *testing.T) {
	r := newRig(t, order.Options{})
	w := r.dev.NewWitness()
	a, b, v, u, h := r.stream("a"), r.stream("b"), r.buffer(64), r.buffer(64), r.pinned(64)
	copied, err := r.dev.NewEvent(device.EventOptions{Name: "copied", Witness: w})
	r.do(err, a.CopyH2D(v.View(), h.Bytes()), writes(a, u.View()))
	r.reported(w.HostAtRest(h.Bytes()))
	r.do(a.Record(copied))
	r.reported(w.AtRest(v.View()))
	r.do(copied.Synchronize(ctx), w.HostAtRest(h.Bytes()), w.AtRest(v.View()))
	r.do(writes(b, v.View()), b.CopyD2H(h.Bytes(), v.View()))
	r.reported(reads(b, u.View()))
	r.reported(u.Close())
}

// Memory is not freed under work that the host has not waited for, and what the work
// used is remembered by its address when it is freed past the checker.
func TestHistoryOutlivesTheOwner(t *testing.T) {
	r := newRig(t, order.Options{})
	a, b := r.stream("a"), r.stream("b")
	x := r.buffer(64)
	x.Describe(func(int64, int64) (string, string) { return "X", "" })
	r.do(reads(a, x.View()))
	report := r.reported(x.Close())
	require.Equal(t, "Free", report.Second.Op)
	require.Contains(t, report.Error(), "frees X")
	require.EqualValues(t, 1, r.dev.Usage().Buffers)

	r.do(r.drv.Free(x.View().Address())) // by another library
	y := r.buffer(64)
	require.Equal(t, x.View().Address(), y.View().Address())
	y.Describe(func(int64, int64) (string, string) { return "Y", "" })
	report = r.reported(writes(b, y.View()))
	require.Equal(t, []string{"X", "Y"}, []string{report.First.Memory, report.Second.Memory})
	require.Contains(t, report.Error(), "Y, bytes 0 to 64, then X, ")
	r.do(a.Synchronize(ctx), writes(b, y.View()))

	z := r.buffer(64) // one that is closed as it should be leaves nothing behind
	r.do(writes(a, z.View()), a.Synchronize(ctx), z.Close())
	again := r.buffer(64)
	require.Equal(t, z.View().Address(), again.View().Address())
	r.do(writes(b, again.View()))
}

// Completeness is never traded: an access is found however much has happened since,
// and next to it nothing is.
func TestARaceIsFoundAtAnyDistance(t *testing.T) {
	runs := map[int]int{10: 1000, 1_000: 60, 100_000: 1}
	if testing.Short() || raceEnabled {
		runs = map[int]int{10: 100, 1_000: 5}
	}
	for distance, n := range runs {
		for run := range n {
			r := newRig(t, order.Options{})
			a, b, e := r.stream("a"), r.stream("b"), r.event("e")
			v, other := r.buffer(8192), r.buffer(1<<16)
			r.do(writes(a, v.View().Slice(0, 4096)), a.Record(e))
			var readers []*device.Stream
			for range 8 {
				s := r.stream("reader")
				r.do(s.Wait(e))
				readers = append(readers, s)
			}
			for i := range 64 {
				at := int64(i*61+run) % 4000
				r.do(reads(readers[i%8], v.View().Slice(at, 1+at%96)))
			}
			for i := range distance {
				at := int64(i*4) % (1<<16 - 8)
				r.do(writes(readers[i%8], other.View().Slice(int64(i%8)*8192+at%8000, 4)))
			}
			r.do(writes(b, v.View().Slice(4096, 4096)))
			report := r.reported(writes(b, v.View().Slice(4095, 2)))
			require.Equal(t, []int64{4095, 1}, []int64{report.Offset, report.Bytes})
			require.Equal(t, "a", report.First.Stream)
			require.Equal(t, "e", report.Event)
		}
	}
}

// With ListOnly calls go on, and each pair of calls is listed once.
func TestListOnly(t *testing.T) {
	var told []*order.Error
	r := newRig(t, order.Options{ListOnly: true, Report: func(e *order.Error) { told = append(told, e) }})
	a, b, v := r.stream("a"), r.stream("b"), r.buffer(64)
	for range 5 {
		r.do(writes(a, v.View()))
		r.do(reads(b, v.View()))
	}
	require.Len(t, r.checker.Reports(), 2) // the read, and the next write
	require.Equal(t, r.checker.Reports(), told)
	require.ErrorContains(t, r.checker.Err(), "may still read")
	r.do(v.Close())
}

// After a fault nothing runs any more, and everything may be freed.
func TestAFaultEndsAllWork(t *testing.T) {
	boom := errors.New("boom")
	drv, err := cpu.New(cpu.Options{Adversary: &cpu.Adversary{Fault: func(cpu.Call) error { return boom }}})
	require.NoError(t, err)
	c := order.New(order.Options{})
	dev := device.New(c.Wrap(drv))
	s, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	b, err := dev.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, s.Memset(b.View(), 1))
	require.ErrorIs(t, s.Synchronize(ctx), device.ErrFault)
	require.NoError(t, errors.Join(b.Close(), s.Close(), dev.Close()))
	require.NoError(t, c.Err())
}

// LEAT_ORDER in the environment, and nothing else, turns it on.
func TestTheEnvironmentTurnsItOn(t *testing.T) {
	for value, on := range map[string]bool{"": false, "0": false, "false": false, "1": true, "true": true, "T": true} {
		t.Setenv("LEAT_ORDER", value)
		dev, err := cpu.Open(cpu.Options{})
		require.NoError(t, err)
		checked, is := dev.Driver().(*order.Device)
		require.Equal(t, on, is)
		if on {
			require.Same(t, order.Default(), checked.Checker())
			require.Contains(t, fmt.Sprint(dev.Notes()), "device/order")
		}
		require.NoError(t, dev.Close())
	}
}

// A value that is neither true nor false would leave a program unchecked that was to be
// checked.
func TestTheEnvironmentsMistakeIsAnError(t *testing.T) {
	for _, value := range []string{"on", "yes", "2", " 1"} {
		t.Setenv("LEAT_ORDER", value)
		_, err := cpu.Open(cpu.Options{})
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("LEAT_ORDER is %q", value))
	}
}

// Where there is no checker nobody is told anything.
func TestWithoutACheckerDeclaringDoesNothing(t *testing.T) {
	dev := device.New(newFake(0, new(uintptr)))
	s, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	b, err := dev.Alloc(8)
	require.NoError(t, err)
	b.Describe(nil)
	w := dev.NewWitness()
	require.Nil(t, w)
	w.Tell()
	mem := make([]byte, 8)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		_ = errors.Join(dev.HostReads(mem), dev.HostWrites(mem), s.Uses(b.View(), device.Out), w.AtRest(b.View()), w.HostAtRest(mem))
	}))
}
