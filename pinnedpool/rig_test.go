package pinnedpool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/order"
	"github.com/leat-go/leat/pinnedpool"
)

const slotBytes = 64

// rig is a pool on a device of its own, whose copies all go through one stream.
type rig struct {
	t      *testing.T
	dev    *device.Device
	tap    *devicetest.Tap
	copies *device.Stream
	target *device.Buffer
	pool   *pinnedpool.Pool
	before device.Usage
}

func newRig(t *testing.T, co cpu.Options, slots int, slotBytes int64, o pinnedpool.Options) *rig {
	t.Helper()
	drv, err := cpu.New(co)
	require.NoError(t, err)
	checker := order.New(order.Options{ListOnly: true})
	t.Cleanup(func() { require.NoError(t, checker.Err()) })
	r := &rig{t: t, tap: devicetest.NewTap(checker.Wrap(drv))}
	r.dev = device.New(r.tap)
	r.copies, err = r.dev.NewStream(device.StreamOptions{Name: "copies"})
	require.NoError(t, err)
	r.target, err = r.dev.Alloc(slotBytes)
	require.NoError(t, err)
	r.before = r.dev.Usage()
	r.pool, err = pinnedpool.New(r.dev, slots, slotBytes, o)
	require.NoError(t, err)
	return r
}

// slow is a device whose every copy takes d.
func slow(d time.Duration) cpu.Options {
	return cpu.Options{Model: &cpu.Model{CopyTime: func(cpu.Direction, int64) time.Duration { return d }},
		Adversary: &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true}}
}

func (r *rig) get() *pinnedpool.Buffer {
	r.t.Helper()
	b, err := r.pool.Get(r.t.Context())
	require.NoError(r.t, err)
	return b
}

// upload fills b, submits its copy and gives it to the recycler.
func (r *rig) upload(b *pinnedpool.Buffer, value byte) {
	r.t.Helper()
	for i := range b.Bytes() {
		b.Bytes()[i] = value
	}
	require.NoError(r.t, r.copies.CopyH2D(r.target.View(), b.Bytes()))
	require.NoError(r.t, r.copies.Record(b.Copied()))
	r.pool.PutAfter(b)
}

// close frees everything and requires that nothing is left of the pool.
func (r *rig) close() {
	r.t.Helper()
	require.NoError(r.t, r.pool.Close(r.t.Context()))
	r.nothingLeft()
	require.NoError(r.t, r.copies.Close())
	require.NoError(r.t, r.target.Close())
	require.NoError(r.t, r.dev.Close())
}

func (r *rig) nothingLeft() {
	r.t.Helper()
	after := r.dev.Usage()
	after.Allocations = r.before.Allocations
	require.Equal(r.t, r.before, after)
}
