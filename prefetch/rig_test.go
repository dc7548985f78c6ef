package prefetch_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// canary is a dataset each byte of which tells its sample: a batch that holds
// anything of another batch shows it.
type canary struct {
	n, width int
	read     func(ctx context.Context, index int) error // called first, if not nil
}

func (c canary) Len() int { return c.n }

func (c canary) Fields() []loader.Field {
	return []loader.Field{
		{Name: "index", DType: dtype.Int64},
		{Name: "bytes", DType: dtype.Uint8, Shape: []int{c.width}},
	}
}

func (c canary) Read(ctx context.Context, index int, row *loader.Row) error {
	if c.read != nil {
		if err := c.read(ctx, index); err != nil {
			return err
		}
	}
	fill(row.Bytes("bytes"), index)
	return loader.Write(row, "index", int64(index))
}

func fill(b []byte, index int) {
	for i := range b {
		b[i] = byte((index*7 + i*13 + 1) % 251)
	}
}

// rig is a pipeline of canaries on a device of its own.
type rig struct {
	t       *testing.T
	data    canary
	ld      *loader.Loader
	dev     *device.Device
	tap     *devicetest.Tap
	compute *device.Stream
	pf      *prefetch.Prefetcher
	arena   *device.HostBuffer // pinned memory for what read copies back
	used    int64
	before  device.Usage
	orders  *orders                                   // nil on a device of usual cost
	spin    func(*device.Stream, time.Duration) error // keeps a stream busy
}

// newRig makes a pipeline on a CPU device, which is as unkind as the rules allow
// unless co says otherwise.
func newRig(t *testing.T, data canary, co cpu.Options, batchSize int, lo loader.Options, po prefetch.Options) *rig {
	t.Helper()
	if co.Adversary == nil {
		co.Adversary = &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Seed: 1}
	}
	drv, err := cpu.New(co)
	require.NoError(t, err)
	o, watched := watch(t, drv)
	r := newRigOn(t, watched, cpuSpin, data, batchSize, lo, po)
	r.orders = o
	return r
}

// newKindRig is newRig for what measures the device's usual cost.
func newKindRig(t *testing.T, data canary, co cpu.Options, batchSize int, lo loader.Options, po prefetch.Options) *rig {
	t.Helper()
	drv, err := cpu.New(co)
	require.NoError(t, err)
	return newRigOn(t, drv, cpuSpin, data, batchSize, lo, po)
}

func cpuSpin(s *device.Stream, d time.Duration) error { return s.Launch(cpu.Busy(d)) }

func newRigOn(t *testing.T, drv driver.Device, spin func(*device.Stream, time.Duration) error, data canary, batchSize int, lo loader.Options, po prefetch.Options) *rig {
	t.Helper()
	r := &rig{t: t, data: data, spin: spin, tap: devicetest.NewTap(drv)}
	var err error
	r.ld, err = loader.New(data, batchSize, lo)
	require.NoError(t, err)
	r.dev = device.New(r.tap)
	r.compute, err = r.dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	// From memory that isn't pinned a GPU's copy would block the test until compute
	// gets there, and no missing wait would ever show.
	r.arena, err = r.dev.AllocHost(8<<20, device.HostOptions{})
	require.NoError(t, err)
	r.before = r.dev.Usage()
	r.pf, err = prefetch.New(r.compute, r.ld, po)
	require.NoError(t, err)
	return r
}

// close frees everything and requires that nothing is left of the Prefetcher.
func (r *rig) close() {
	r.t.Helper()
	require.NoError(r.t, r.dev.Synchronize(context.Background()))
	require.NoError(r.t, r.pf.Close())
	r.nothingLeft()
	require.NoError(r.t, r.arena.Close())
	require.NoError(r.t, r.compute.Close())
	require.NoError(r.t, r.dev.Close())
}

func (r *rig) nothingLeft() {
	r.t.Helper()
	after := r.dev.Usage()
	after.Allocations = r.before.Allocations
	require.Equal(r.t, r.before, after)
}

// halt closes rd and throws away what was read ahead, as leaving for another place does.
func halt(pf *prefetch.Prefetcher, rd *prefetch.Reader) error {
	state := pf.State()
	if err := rd.Close(); err != nil {
		return err
	}
	if err := pf.Seek(state.Epoch+1, 0); err != nil {
		return err
	}
	return pf.Restore(state)
}

// A reading is what the compute stream saw of a batch.
type reading struct {
	at    prefetch.Position
	rows  int
	valid int
	index []byte
	bytes []byte
}

// read submits, behind a kernel that takes busy, copies of the batch's fields as compute sees them
// when it gets there.
func (r *rig) read(b prefetch.Batch, busy time.Duration) reading {
	return r.readOn(b, b.Stream(), busy)
}

func (r *rig) readOn(b prefetch.Batch, stream *device.Stream, busy time.Duration) reading {
	r.t.Helper()
	got := reading{at: b.Position(), rows: b.Len(), valid: b.Valid()}
	if busy > 0 {
		require.NoError(r.t, r.spin(stream, busy))
	}
	for name, to := range map[string]*[]byte{"index": &got.index, "bytes": &got.bytes} {
		f := b.Field(name)
		*to = r.arena.Bytes()[r.used:][:f.View.Size()]
		r.used += f.View.Size()
		require.NoError(r.t, stream.CopyD2H(*to, f.View))
	}
	return got
}

// verify reports the first row of a reading that isn't the sample that the order
// has there. The device must have come to rest.
func (r *rig) verify(got reading) error {
	order := r.ld.Order(got.at.Epoch)
	want := make([]byte, r.data.width)
	samples := int64(r.data.n)
	for row := range got.rows {
		index := int(order.At((got.at.First + int64(row)) % samples))
		if is := int64(binary.LittleEndian.Uint64(got.index[8*row:])); is != int64(index) {
			return fmt.Errorf("epoch %d batch %d row %d is sample %d, want %d", got.at.Epoch, got.at.Batch, row, is, index)
		}
		fill(want, index)
		if is := got.bytes[row*r.data.width:][:r.data.width]; string(is) != string(want) {
			return fmt.Errorf("epoch %d batch %d row %d: sample %d has another's bytes", got.at.Epoch, got.at.Batch, row, index)
		}
	}
	return nil
}

// passOn is a transform that takes a while and changes nothing, but for the order
// of the fields.
func passOn(spin func(*device.Stream, time.Duration) error, busy time.Duration, data canary) *prefetch.Transform {
	fields := data.Fields()
	fields[0], fields[1] = fields[1], fields[0]
	return &prefetch.Transform{Out: fields, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
		if busy > 0 {
			if err := spin(s, busy); err != nil {
				return err
			}
		}
		for _, name := range []string{"index", "bytes"} {
			if err := s.CopyD2D(out.Field(name).View, in.Field(name).View); err != nil {
				return err
			}
		}
		return nil
	}}
}

// epochs ranges over n epochs, reads every batch on the device, and returns the
// first error of the pipeline or of the contents.
func (r *rig) epochs(n int, busy time.Duration) error {
	var all []reading
	for range n {
		for b, err := range r.pf.Batches(context.Background()) {
			if err != nil {
				return err
			}
			all = append(all, r.read(b, busy))
		}
	}
	if err := r.dev.Synchronize(context.Background()); err != nil {
		return err
	}
	for i, got := range all {
		per, _ := r.ld.Batches()
		if want := (prefetch.Position{Epoch: i / per, Batch: i % per}); got.at.Epoch != want.Epoch || got.at.Batch != want.Batch {
			return fmt.Errorf("batch %d delivered is %+v", i, got.at)
		}
		if err := r.verify(got); err != nil {
			return err
		}
	}
	if per, _ := r.ld.Batches(); len(all) != n*per {
		return fmt.Errorf("%d batches delivered, want %d", len(all), n*per)
	}
	return nil
}
