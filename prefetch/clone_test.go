package prefetch_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A meantime is a device in whose next call something else happens.
type meantime struct {
	driver.Device
	inAlloc, inCopy func()
}

func (d *meantime) Alloc(bytes int64) (driver.Address, error) {
	if f := d.inAlloc; f != nil {
		d.inAlloc = nil
		f()
	}
	return d.Device.Alloc(bytes)
}

func (d *meantime) CopyD2D(s driver.Stream, dst, src driver.Address, bytes int64) error {
	if f := d.inCopy; f != nil {
		d.inCopy = nil
		f()
	}
	return d.Device.CopyD2D(s, dst, src, bytes)
}

// A batch that is released while its Clone gets memory panics as any released one, and the
// memory is given back.
func TestAReleaseBeforeTheCopyOfAClone(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	between := &meantime{Device: drv}
	r := newRigOn(t, between, cpuSpin, canary{n: 8, width: 8}, 2, plain, prefetch.Options{})
	for b, err := range r.pf.Batches(t.Context()) {
		require.NoError(t, err)
		between.inAlloc = b.Release
		require.Contains(t, recovered(func() { _, _ = b.Clone() }), "Clone after its release")
	}
	r.close()
}

// A batch that is released while it is copied to its Clone is overwritten behind the copy.
func TestAReleaseWithinTheCopyOfAClone(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	between := &meantime{Device: drv}
	r := newRigOn(t, between, cpuSpin, canary{n: 2, width: 8}, 2, loader.Options{Workers: 1, Epochs: 1}, prefetch.Options{})
	for b, err := range r.pf.Batches(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, 2, r.pf.Stats().Free)
		released := make(chan struct{})
		between.inCopy = func() {
			go func() {
				defer close(released)
				b.Release()
			}()
			for !b.Released() {
				runtime.Gosched()
			}
			for range 100 {
				runtime.Gosched()
				require.Equal(t, 2, r.pf.Stats().Free, "nobody may write there before all is submitted")
			}
		}
		clone, err := b.Clone()
		require.NoError(t, err)
		<-released
		require.Equal(t, 3, r.pf.Stats().Free)
		require.NoError(t, r.compute.Synchronize(t.Context()))
		require.NoError(t, clone.Close())
	}
	r.close()
}

// A Clone has the shape of its batch for good, also where the memory's next batch is short.
func TestACloneKeepsItsShape(t *testing.T) {
	data := canary{n: 6, width: 8}
	check := func(t *testing.T, pf *prefetch.Prefetcher) {
		var first *prefetch.Clone
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			if first == nil {
				first, err = b.Clone()
				require.NoError(t, err)
			} else {
				require.Equal(t, []int{2, 8}, b.Field("bytes").Shape)
			}
		}
		require.Equal(t, []int{4, 8}, first.Field("bytes").Shape)
		require.Equal(t, []int{4}, first.Field("index").Shape)
		require.Contains(t, recovered(func() { first.Field("none") }), `no field "none"`)
		if pf.Plan().Device != "" {
			require.NoError(t, pf.Quiesce(t.Context()))
		}
		require.NoError(t, first.Close())
	}
	t.Run("device", func(t *testing.T) {
		r := newRig(t, data, cpu.Options{}, 4, plain, prefetch.Options{Depth: 1})
		check(t, r.pf)
		r.close()
	})
	t.Run("host", func(t *testing.T) {
		ld, err := loader.New(data, 4, plain)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
		require.NoError(t, err)
		check(t, pf)
		require.NoError(t, pf.Close())
	})
}

// A batch in host memory has no stream to wait for it.
func TestUsedOnOfAHostBatch(t *testing.T) {
	data := canary{n: 4, width: 8}
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	stream, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	for _, transform := range []*prefetch.Transform{nil, passOn(cpuSpin, 0, data)} {
		ld, err := loader.New(data, 2, plain)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: transform})
		require.NoError(t, err)
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.ErrorContains(t, b.UsedOn(stream), "the batch is in host memory")
		}
		require.NoError(t, pf.Close())
	}
	require.NoError(t, stream.Close())
	require.NoError(t, dev.Close())
}
