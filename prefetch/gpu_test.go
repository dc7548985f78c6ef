package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda"
	"github.com/leat-go/leat/device/cuda/latch"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// gpu opens the first GPU, or skips and says why; with LEAT_GPU=required it fails.
func gpu(t *testing.T) *device.Device {
	t.Helper()
	dev, err := cuda.Open(cuda.Options{})
	if err != nil {
		if os.Getenv("LEAT_GPU") == "required" {
			t.Fatal("LEAT_GPU=required, and ", err)
		}
		t.Skip("needs a GPU: ", err)
	}
	return dev
}

// slowCopies is a GPU whose copies take longer: a kernel stands before each in its
// stream, so that a wait that is missing shows every time.
type slowCopies struct {
	driver.Device
	in, out time.Duration
}

func (d slowCopies) Unwrap() driver.Device { return d.Device }

func (d slowCopies) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	if err := d.spin(s, d.in); err != nil {
		return err
	}
	return d.Device.CopyH2D(s, dst, src)
}

func (d slowCopies) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	if err := d.spin(s, d.out); err != nil {
		return err
	}
	return d.Device.CopyD2H(s, dst, src)
}

func (d slowCopies) spin(s driver.Stream, by time.Duration) error {
	if by == 0 {
		return nil
	}
	l := latch.SpinLaunch(by)
	return d.Launch(s, &l)
}

func gpuRig(t *testing.T, by time.Duration, data canary, batchSize int, lo loader.Options, po prefetch.Options) *rig {
	t.Helper()
	o, watched := watch(t, gpu(t).Driver())
	r := newRigOn(t, slowCopies{watched, by, 0}, latch.Spin, data, batchSize, lo, po)
	r.orders = o
	return r
}

// Ragged batches on a GPU are what plain slices make of their samples: as they come, through
// transforms and a Map, several to a slot, behind copies that take long.
func TestGPURaggedBatches(t *testing.T) {
	s := newText(70, raggedFields(300, 8), 1, 0.2)
	lo := loader.Options{Epochs: 2, Shuffle: true, Last: loader.Exact, Shard: loader.Shard{Index: 1, Count: 2}}
	for _, by := range []time.Duration{0, time.Millisecond} {
		for name, transform := range map[string]*prefetch.Transform{"plain": nil, "copied": copied(s), "converted": converted(t, s)} {
			check := s.check
			switch name {
			case "copied":
				check = s.checkCopied
			case "converted":
				check = s.checkConverted
			}
			for _, perCopy := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/by=%v/percopy=%d", name, by, perCopy), func(t *testing.T) {
					po := prefetch.Options{Depth: 2, BatchesPerCopy: perCopy, Transform: transform}
					for _, way := range []func(*textRig, *loader.Loader){
						func(r *textRig, ld *loader.Loader) { r.readText(ld, po, check) },
						func(r *textRig, ld *loader.Loader) { r.mapText(ld, po, s, check) },
					} {
						ld, err := loader.New(s, 6, lo)
						require.NoError(t, err)
						way(newTextRigOn(t, slowCopies{gpu(t).Driver(), by, 0}, latch.Spin), ld)
					}
				})
			}
		}
	}
}

func TestGPUEveryBatchOnceInOrder(t *testing.T) {
	data := canary{n: 500, width: 3001}
	for _, depth := range []int{1, 2, 3, 8} {
		for _, hostSlots := range []int{1, 8} {
			for name, po := range map[string]prefetch.Options{
				"plain":     {Timing: true, BatchesPerCopy: 1},
				"auto":      {},
				"transform": {BatchesPerCopy: 2, Transform: passOn(latch.Spin, 20*time.Microsecond, data)},
				"streams":   {BatchesPerCopy: 3, Streams: prefetch.Streams{Compute: 3}},
			} {
				po.Depth, po.Memory.HostSlots = depth, hostSlots
				t.Run(fmt.Sprintf("%s/depth=%d/hostslots=%d", name, depth, hostSlots), func(t *testing.T) {
					r := gpuRig(t, 0, data, 9, loader.Options{Shuffle: true, Seed: 3, Epochs: 2}, po)
					require.NoError(t, r.epochs(2, 100*time.Microsecond))
					r.close()
				})
			}
		}
	}
}

func TestGPUEveryEdgeIsNeeded(t *testing.T) {
	const (
		batches   = 12
		depth     = 2
		hostSlots = 3
		ms        = time.Millisecond
	)
	for _, pipeline := range []struct {
		name  string
		edges []edge
		loads map[byte]load
	}{
		{"plain", edges, map[byte]load{'a': {6 * ms, 0, ms}, 'b': {ms, 0, 6 * ms}, 'c': {6 * ms, 0, ms}}},
		{"transform", transformEdges, map[byte]load{'a': {ms, 6 * ms, ms}, 'b': {ms, ms, 6 * ms}, 'c': {6 * ms, ms, ms},
			'd': {6 * ms, ms, ms}, 'e': {ms, 6 * ms, ms}}},
	} {
		mutate := func(t *testing.T, l load, rule devicetest.Rule) (fired int64, err error) {
			data := canary{n: batches * 4, width: 512}
			po := prefetch.Options{Depth: depth, BatchesPerCopy: 1, Memory: prefetch.Memory{HostSlots: hostSlots}}
			if l.transform > 0 {
				po.Transform = passOn(latch.Spin, l.transform, data)
			}
			r := gpuRig(t, l.in, data, 4, loader.Options{Shuffle: true, Seed: 7, Workers: 2}, po)
			armed := r.tap.Arm(rule)
			err = r.epochs(1, l.compute)
			fired = armed.Fired()
			r.close()
			if rule.Swallow {
				require.NotEmpty(t, r.orders.found())
			}
			return fired, err
		}
		for _, e := range pipeline.edges {
			l := pipeline.loads[e.name[0]]
			_, err := mutate(t, l, devicetest.Rule{Op: devicetest.Record, Event: "no such event"})
			require.NoError(t, err, "unmutated")
			for k := int64(1); k <= batches-depth-hostSlots-2; k++ {
				t.Run(fmt.Sprintf("%s/%s/k=%d", pipeline.name, e.name, k), func(t *testing.T) {
					fired, err := mutate(t, l, devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Nth: k, Swallow: true})
					require.EqualValues(t, 1, fired)
					require.Error(t, err, "the contents are right without this call")
				})
			}
		}
	}
}

func TestGPUEveryEdgeOfTheWayBackIsNeeded(t *testing.T) {
	const ms = time.Millisecond
	run := func(t *testing.T, compute, out time.Duration, rule devicetest.Rule) (fired int64, failed error) {
		o, watched := watch(t, gpu(t).Driver())
		r := newRigOn(t, slowCopies{watched, 0, out}, latch.Spin, canary{n: 14, width: 512},
			1, loader.Options{Workers: 2}, prefetch.Options{BatchesPerCopy: 1})
		armed := r.tap.Arm(rule)
		for res, err := range r.pf.Map(context.Background(), prefetch.Output{Fields: r.data.Fields(), Slots: 2}, r.echo(always(compute))) {
			require.NoError(t, err)
			failed = errors.Join(failed, r.verify(got(res)))
		}
		fired = armed.Fired()
		r.close()
		if rule.Swallow {
			require.NotEmpty(t, o.found())
		}
		return fired, failed
	}
	for _, e := range []struct {
		edge
		compute, out time.Duration
	}{
		{edge{name: "f/Record(written)", op: devicetest.Record, event: "written", stream: "compute"}, 6 * ms, ms},
		{edge{name: "f/Wait(written)", op: devicetest.Wait, event: "written", stream: "download"}, 6 * ms, ms},
		{edge{name: "g/Record(fetched)", op: devicetest.Record, event: "fetched", stream: "download"}, ms, 6 * ms},
		{edge{name: "g/Synchronize(fetched)", op: devicetest.SynchronizeEvent, event: "fetched"}, ms, 6 * ms},
	} {
		_, err := run(t, e.compute, e.out, devicetest.Rule{Op: e.op, Event: "no such event"})
		require.NoError(t, err, "unmutated")
		for k := int64(1); k <= 10; k++ {
			t.Run(fmt.Sprintf("%s/k=%d", e.name, k), func(t *testing.T) {
				fired, err := run(t, e.compute, e.out, devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Nth: k, Swallow: true})
				require.EqualValues(t, 1, fired)
				require.Error(t, err, "the contents are right without this call")
			})
		}
	}
}

func TestGPUResultsComeBackInOrder(t *testing.T) {
	for name, po := range map[string]prefetch.Options{"one stream": {}, "three streams": {Streams: prefetch.Streams{Compute: 3}}} {
		for _, asFinished := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/asFinished=%v", name, asFinished), func(t *testing.T) {
				r := gpuRig(t, 0, canary{n: 3000, width: 3001}, 16, loader.Options{Shuffle: true, Seed: 3}, po)
				seen := make([]bool, 3000/16+1)
				n := 0
				for res, err := range r.pf.Map(context.Background(), prefetch.Output{Fields: r.data.Fields(), AsFinished: asFinished}, r.echo(always(50*time.Microsecond))) {
					require.NoError(t, err)
					at := res.Position().Batch
					require.False(t, seen[at])
					require.True(t, asFinished || at == n)
					seen[at] = true
					require.NoError(t, r.verify(got(res)))
					n++
				}
				require.Len(t, seen, n)
				r.close()
			})
		}
	}
}

func TestGPUTwoPrefetchersOnOneDevice(t *testing.T) {
	dev := gpu(t)
	_, drv := watch(t, dev.Driver())
	type result struct {
		r   *rig
		err error
	}
	results := make(chan result)
	for i := range 2 {
		r := newRigOn(t, drv, latch.Spin, canary{n: 3000, width: 1000 + i},
			16, loader.Options{Shuffle: true, Seed: uint64(i), Epochs: 1}, prefetch.Options{})
		go func() { results <- result{r, r.epochs(1, 50*time.Microsecond)} }()
	}
	for range 2 {
		res := <-results
		require.NoError(t, res.err)
		require.NoError(t, res.r.pf.Close())
		res.r.nothingLeft()
	}
	require.NoError(t, dev.Close())
}

func TestGPUSteadyStateAllocatesNothing(t *testing.T) {
	data := canary{n: 1 << 20, width: 256}
	r := newRigOn(t, driver.Unwrap(gpu(t).Driver()), latch.Spin, data, 64, loader.Options{Shuffle: true, Workers: 4},
		prefetch.Options{Timing: true, Transform: passOn(latch.Spin, 0, data)})
	r.steady(64 * 256)
	r.close()
}

func TestGPUAbandonedEpochsLeaveNothing(t *testing.T) {
	r := gpuRig(t, 0, canary{n: 4000, width: 100}, 2, loader.Options{Shuffle: true, Workers: 4}, prefetch.Options{})
	goroutines := runtime.NumGoroutine()
	allocations := r.dev.Usage().Allocations
	for i := range 1000 {
		for b, err := range r.pf.Batches(context.Background()) {
			require.NoError(t, err)
			require.Equal(t, i, b.Position().Batch)
			break
		}
	}
	require.Equal(t, allocations, r.dev.Usage().Allocations)
	r.close()
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
}

// A hundred thousand batches leave memory of every kind as it was.
func TestGPUSoakIsFlat(t *testing.T) {
	data := canary{n: 1 << 22, width: 1000}
	r := gpuRig(t, 0, data, 32, loader.Options{Shuffle: true}, prefetch.Options{Timing: true})
	sum, err := r.dev.Alloc(8)
	require.NoError(t, err)
	const batches, every = 100_000, 10_000
	var heap []uint64
	var usage []device.Usage
	n := 0
	for b, err := range r.pf.Batches(context.Background()) {
		require.NoError(t, err)
		require.NoError(t, kernels.Checksum(r.compute, sum.View(), b.Field("bytes").View))
		if n++; n%every == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap, usage = append(heap, m.HeapAlloc), append(usage, r.dev.Usage())
		}
		if n == batches {
			break
		}
	}
	t.Logf("heap after each %d batches: %v", every, heap)
	require.Less(t, heap[len(heap)-1], heap[0]+1<<20)
	require.Equal(t, usage[0], usage[len(usage)-1])
	require.NoError(t, r.compute.Synchronize(context.Background()))
	require.NoError(t, sum.Close())
	r.close()
}

// UsedOn with a stream of another GPU, behind slow work there: the batch's memory is
// overwritten only when the peer has fetched it, and the stream may be closed at the
// Release. It skips where there is one GPU.
func TestGPUUsedOnAPeer(t *testing.T) {
	gpus, err := cuda.List()
	if err != nil || len(gpus) < 2 {
		gpu(t) // or says what is missing
		t.Skipf("%d GPU here, and a peer is another one", len(gpus))
	}
	for _, per := range []int{1, 3} {
		data := canary{n: 400, width: 16 << 10} // what read copies back takes 8 MiB at most
		rows := int64(4 * data.width)
		r := newRigOn(t, gpu(t).Driver(), latch.Spin, data, 4, loader.Options{Shuffle: true, Epochs: 1},
			prefetch.Options{Depth: 2, BatchesPerCopy: per, Memory: prefetch.Memory{HostSlots: 3 * per}})
		peer, err := cuda.Open(cuda.Options{Index: 1})
		require.NoError(t, err)
		host, err := peer.AllocHost(100*rows, device.HostOptions{})
		require.NoError(t, err)
		var all []reading
		var buffers []*device.Buffer
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			remote, err := peer.NewStream(device.StreamOptions{Name: "remote"})
			require.NoError(t, err)
			require.NoError(t, b.UsedOn(remote))
			buffer, err := peer.Alloc(rows)
			require.NoError(t, err)
			to := host.Bytes()[int64(len(all))*rows:][:rows]
			require.NoError(t, errors.Join(latch.Spin(remote, 2*time.Millisecond),
				remote.CopyPeer(buffer.View(), b.Field("bytes").View), remote.CopyD2H(to, buffer.View())))
			got := r.read(b, 0)
			got.bytes = to
			all, buffers = append(all, got), append(buffers, buffer)
			b.Release()
			require.NoError(t, remote.Close())
		}
		require.NoError(t, peer.Synchronize(t.Context()))
		require.NoError(t, r.dev.Synchronize(t.Context()))
		r.sequence(all, 1)
		r.close()
		for _, b := range buffers {
			require.NoError(t, b.Close())
		}
		require.NoError(t, host.Close())
		require.NoError(t, peer.Close())
	}
}
