package capture_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/cuda"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// gpu opens the first GPU, or skips and says why; with LEAT_GPU=required it fails.
func gpu(t testing.TB) *device.Device {
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

// A pick is the parameters of a step of kernels that both kinds of device have: which row
// of a table to fetch.
type pick struct{ Row int64 }

const (
	tableRows = 97
	rowBytes  = 64
)

// A gathering is a step that fetches a row, as its parameters say, and sums its batch.
type gathering struct {
	t        *testing.T
	dev      *device.Device
	compute  *device.Stream
	table    *device.HostBuffer // in pinned memory, which the device reads
	row, sum *device.Buffer
	results  *device.HostBuffer
	steps    int
	scalar   func() float32 // of a Fill in the step; nil for none
}

func newGathering(t *testing.T, dev *device.Device, steps int) *gathering {
	g := &gathering{t: t, dev: dev}
	var err error
	g.compute, err = dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	g.table, err = dev.AllocHost(tableRows*rowBytes, device.HostOptions{})
	require.NoError(t, err)
	for i := range g.table.Bytes() {
		g.table.Bytes()[i] = byte(i * 7 % 251)
	}
	g.row, err = dev.Alloc(rowBytes)
	require.NoError(t, err)
	g.sum, err = dev.Alloc(8)
	require.NoError(t, err)
	g.results, err = dev.AllocHost(int64(steps)*(rowBytes+8), device.HostOptions{})
	require.NoError(t, err)
	return g
}

func (g *gathering) submit(s *device.Stream, b capture.Batch, params device.View) error {
	table, err := g.table.View()
	if err != nil {
		return err
	}
	err = kernels.Gather(s, g.row.View(), table, params, kernels.GatherParams{RowBytes: rowBytes, Index: dtype.Int64})
	if g.scalar != nil {
		err = errors.Join(err, kernels.Fill(s, g.row.View(), dtype.Float32, g.scalar()))
	}
	return errors.Join(err, kernels.Checksum(s, g.sum.View(), b.Field("x").View))
}

func rowOf(step int) int64 { return int64(step*31) % tableRows }

// run does a step on a batch, and fetches what it leaves.
func (g *gathering) run(step *capture.Step[pick], b prefetch.Batch) {
	require.NoError(g.t, step.Run(b, pick{rowOf(g.steps)}))
	at := g.results.Bytes()[g.steps*(rowBytes+8):][:rowBytes+8]
	require.NoError(g.t, errors.Join(b.Stream().CopyD2H(at[:rowBytes], g.row.View()), b.Stream().CopyD2H(at[rowBytes:], g.sum.View())))
	g.steps++
}

// verify requires that every step had its own row and its own batch.
func (g *gathering) verify(batchBytes int, fill func(x []byte, step int)) {
	require.NoError(g.t, g.compute.Synchronize(context.Background()))
	x := make([]byte, batchBytes)
	for i := range g.steps {
		at := g.results.Bytes()[i*(rowBytes+8):][:rowBytes+8]
		require.Equal(g.t, g.table.Bytes()[rowOf(i)*rowBytes:][:rowBytes], at[:rowBytes], "step %d", i)
		fill(x, i)
		require.Equal(g.t, kernels.ChecksumOf(x), binary.LittleEndian.Uint64(at[rowBytes:]), "step %d", i)
	}
}

func (g *gathering) close() {
	require.NoError(g.t, errors.Join(g.table.Close(), g.row.Close(), g.sum.Close(), g.results.Close(), g.compute.Close(), g.dev.Close()))
}

// pattern is what sample i has in it.
func pattern(x []byte, i int) {
	for j := range x {
		x[j] = byte(i*13 + j)
	}
}

// A hundred and more captures while the pipeline runs at its full rate lose no batch, and
// every step has its own parameters: each epoch has a Step of its own.
func capturedBesideAPipeline(t *testing.T, dev *device.Device, width int) {
	const batch, perEpoch, epochs = 4, 60, 10
	g := newGathering(t, dev, perEpoch*epochs)
	fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{width}}}
	ld, err := loader.New(loader.FromFunc(batch*perEpoch, fields, func(_ context.Context, i int, row *loader.Row) error {
		pattern(row.Bytes("x"), i)
		return nil
	}), batch, loader.Options{Epochs: epochs})
	require.NoError(t, err)
	pf, err := prefetch.New(g.compute, ld, prefetch.Options{BatchesPerCopy: 1})
	require.NoError(t, err)
	var captures, replays int64
	for _, batches := range pf.Epochs(t.Context()) {
		step, err := capture.New[pick](pf, g.submit, capture.Options{})
		require.NoError(t, err)
		for b, err := range batches {
			require.NoError(t, err)
			g.run(step, b)
		}
		report := step.Report()
		require.NoError(t, report.Reason)
		require.NoError(t, report.Failure)
		require.Zero(t, report.Launches)
		captures, replays = captures+report.Captures, replays+report.Replays
		require.NoError(t, step.Close())
	}
	require.Equal(t, perEpoch*epochs, g.steps)
	require.GreaterOrEqual(t, captures, int64(100))
	checked := driver.ObserverOf(dev.Driver()) != nil // by the environment
	require.Equal(t, !checked, replays > 0)
	g.verify(batch*width, func(x []byte, step int) {
		for k := range batch {
			pattern(x[k*width:][:width], step%perEpoch*batch+k)
		}
	})
	require.NoError(t, pf.Close())
	g.close()
}

func TestCapturesBesideAPipeline(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{Adversary: unkind()})
	require.NoError(t, err)
	capturedBesideAPipeline(t, dev, 100)
}

func TestGPUCapturesBesideAPipeline(t *testing.T) {
	for _, width := range []int{100, 64 << 10} {
		capturedBesideAPipeline(t, gpu(t), width)
	}
}

// A scalar of one of the library's kernels is found, on any device, by the kernel's name.
func bakedInAKernel(t *testing.T, dev *device.Device) {
	g := newGathering(t, dev, 200)
	fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{100}}}
	ld, err := loader.New(loader.FromFunc(400, fields, func(_ context.Context, i int, row *loader.Row) error {
		pattern(row.Bytes("x"), i)
		return nil
	}), 2, loader.Options{Epochs: 1})
	require.NoError(t, err)
	for _, changes := range []int{0, 104} {
		pf, err := prefetch.New(g.compute, ld, prefetch.Options{BatchesPerCopy: 1})
		require.NoError(t, err)
		n := 0
		g.scalar = func() float32 {
			if n < changes {
				return 0
			}
			return float32(n)
		}
		step, err := capture.New[pick](pf, g.submit, capture.Options{})
		require.NoError(t, err)
		var failure error
		for b, err := range pf.All(t.Context()) {
			require.NoError(t, err)
			if failure = step.Run(b, pick{0}); failure != nil {
				break
			}
			n++
		}
		if changes == 0 {
			require.NoError(t, failure)
			failure = step.Report().Reason
		}
		d := baked(t, failure, "fill_32", 2)
		require.Contains(t, d.Was, "float32 0)")
		require.NoError(t, errors.Join(step.Close(), pf.Close()))
	}
	g.close()
}

func TestAScalarOfTheLibrarysKernels(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	bakedInAKernel(t, dev)
}

func TestGPUAScalarOfTheLibrarysKernels(t *testing.T) { bakedInAKernel(t, gpu(t)) }

// BenchmarkStep is a step of 64 short kernels, launched one by one and replayed: the host's
// time for a batch, with the device's behind it.
func BenchmarkStep(b *testing.B) {
	for _, on := range []string{"cpu", "cuda"} {
		for _, way := range []string{"launched", "replayed"} {
			b.Run("device="+on+"/way="+way, func(b *testing.B) {
				var dev *device.Device
				var err error
				if on == "cuda" {
					dev = gpu(b)
				} else if dev, err = cpu.Open(cpu.Options{}); err != nil {
					b.Fatal(err)
				}
				benchmarkStep(b, dev, way == "launched")
			})
		}
	}
}

func benchmarkStep(b *testing.B, dev *device.Device, launched bool) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	compute, err := dev.NewStream(device.StreamOptions{})
	must(err)
	memory, err := dev.Alloc(4)
	must(err)
	fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{4}}}
	ld, err := loader.New(loader.FromFunc(1<<20, fields, func(_ context.Context, i int, row *loader.Row) error {
		row.Bytes("x")[0] = 1
		return nil
	}), 64, loader.Options{})
	must(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{BatchesPerCopy: 1})
	must(err)
	step, err := capture.New[pick](pf, func(s *device.Stream, _ capture.Batch, _ device.View) error {
		for range 64 {
			if err := kernels.Fill(s, memory.View(), dtype.Float32, 1); err != nil {
				return err
			}
		}
		return nil
	}, capture.Options{Launch: launched})
	must(err)
	rd, err := pf.Open(b.Context())
	must(err)
	next := func() {
		batch, err := rd.Next(b.Context())
		if errors.Is(err, prefetch.ErrEpochEnd) {
			must(rd.Close())
			rd, err = pf.Open(b.Context())
			must(err)
			batch, err = rd.Next(b.Context())
		}
		must(err)
		must(step.Run(batch, pick{}))
		batch.Release()
	}
	for range 200 { // graphs are made
		next()
	}
	must(compute.Synchronize(b.Context()))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		next()
		if i++; i%256 == 0 { // or the host runs ahead without end
			must(compute.Synchronize(b.Context()))
		}
	}
	must(compute.Synchronize(b.Context()))
	must(errors.Join(rd.Close(), step.Close(), pf.Close(), memory.Close(), compute.Close(), dev.Close()))
}
