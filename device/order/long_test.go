package order_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/order"
)

// A long run takes no more memory than a short one: what is made and freed, streams
// included, and ordinary memory that nobody tells the end of.
func TestMemoryIsBounded(t *testing.T) {
	r := newRig(t, order.Options{})
	keeper, shared := r.stream("keeper"), r.buffer(1<<16)
	round := func(i int) {
		s, e, b, h := r.stream("short"), r.event("e"), r.buffer(4096), r.pinned(4096)
		at := int64(i*7%1000) * 64
		r.do(s.CopyH2D(b.View(), h.Bytes()), s.CopyH2D(b.View().Slice(0, 64), make([]byte, 64)), s.Record(e),
			keeper.Wait(e), keeper.CopyD2D(shared.View().Slice(at, 64), b.View().Slice(64, 64)), keeper.Synchronize(ctx))
		r.do(b.Close(), h.Close(), e.Close(), s.Close())
	}
	heap := func(rounds int) uint64 {
		for i := range rounds {
			round(i)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	rounds := 30_000
	if raceEnabled {
		rounds = 3_000
	}
	before := heap(rounds)
	after := heap(2 * rounds)
	require.Less(t, after, before+1<<20)
	require.NoError(t, r.checker.Err())
}

// In steady state checking allocates nothing, as drivers don't.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	r := newRig(t, order.Options{})
	w := r.dev.NewWitness()
	copied, err := r.dev.NewEvent(device.EventOptions{Witness: w})
	r.do(err)
	up, compute, ready, consumed := r.stream("up"), r.stream("compute"), r.event("ready"), r.event("consumed")
	v, h := r.buffer(4096), r.pinned(4096)
	r.drv.done = true
	r.do(compute.Record(consumed))
	batch := func() {
		_, err := consumed.Done()
		if err = errors.Join(err, w.HostAtRest(h.Bytes()), up.Wait(consumed), up.CopyH2D(v.View(), h.Bytes()), up.Record(copied),
			up.Record(ready), compute.Wait(ready), compute.Memset(v.View().Slice(64, 64), 1), reads(compute, v.View().Slice(256, 512)),
			compute.Record(consumed), copied.Synchronize(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	allocs := testing.AllocsPerRun(1000, batch)
	if !raceEnabled {
		require.Zero(t, allocs)
	}
}

// Any number of goroutines may use a checked device, each other's streams and events
// included.
func TestManyGoroutines(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	c := order.New(order.Options{})
	dev := device.New(c.Wrap(drv))
	shared, err := dev.NewStream(device.StreamOptions{Name: "shared"})
	require.NoError(t, err)
	table, err := dev.Alloc(1024)
	require.NoError(t, err)
	require.NoError(t, errors.Join(shared.Memset(table.View(), 1), shared.Synchronize(ctx)))
	one := func(id int) (err error) {
		must := func(e error) { err = errors.Join(err, e) }
		s, e := dev.NewStream(device.StreamOptions{Name: fmt.Sprint("own ", id)})
		must(e)
		done, e := dev.NewEvent(device.EventOptions{Name: fmt.Sprint("done ", id)})
		must(e)
		b, e := dev.Alloc(1024)
		must(e)
		h, e := dev.AllocHost(1024, device.HostOptions{})
		must(e)
		for range 200 {
			must(s.CopyD2D(b.View(), table.View())) // all read it
			must(s.Record(done))
			must(shared.Wait(done))
			must(shared.CopyD2H(h.Bytes(), b.View()))
			must(shared.Record(done))
			must(done.Synchronize(ctx))
			must(dev.HostReads(h.Bytes()))
			if _, e := shared.Done(); e != nil {
				must(e)
			}
		}
		must(errors.Join(dev.Synchronize(ctx), b.Close(), h.Close(), done.Close(), s.Close()))
		return err
	}
	var all sync.WaitGroup
	failed := make([]error, 8)
	for i := range failed {
		all.Go(func() { failed[i] = one(i) })
	}
	all.Wait()
	require.NoError(t, errors.Join(failed...))
	require.NoError(t, errors.Join(dev.Synchronize(ctx), table.Close(), shared.Close(), dev.Close()))
	require.NoError(t, c.Err())
}

// What a call costs more when it is checked: the driver beneath does nothing.
func BenchmarkCalls(b *testing.B) {
	for _, checked := range []bool{false, true} {
		drv := newFake(0, new(uintptr))
		dev := device.New(drv)
		if checked {
			dev = device.New(order.New(order.Options{}).Wrap(drv))
		}
		up, _ := dev.NewStream(device.StreamOptions{})
		compute, _ := dev.NewStream(device.StreamOptions{})
		ready, _ := dev.NewEvent(device.EventOptions{})
		consumed, _ := dev.NewEvent(device.EventOptions{})
		v, _ := dev.Alloc(4096)
		h, _ := dev.AllocHost(4096, device.HostOptions{})
		drv.done = true
		_ = compute.Record(consumed)
		b.Run(fmt.Sprintf("checked=%v", checked), func(b *testing.B) { // a batch's seven
			b.ReportAllocs()
			for b.Loop() {
				err := errors.Join(up.Wait(consumed), up.CopyH2D(v.View(), h.Bytes()), up.Record(ready),
					compute.Wait(ready), reads(compute, v.View()), compute.Record(consumed))
				if _, e := ready.Done(); e != nil || err != nil {
					b.Fatal(err, e)
				}
			}
		})
	}
}
