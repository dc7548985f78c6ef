package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

const (
	pinned = 1 << 30
	// slotBytes is the size of a slot. smallBytes is the largest block, in pages,
	// that device/cuda takes from cuMemHostAlloc: less than a huge page.
	slotBytes   = 128 << 20
	smallBytes  = 2<<20 - 4<<10
	pinningGoal = 1.0 / 3
)

// measurePinning pins the same amount in slots and, by cuMemHostAlloc, in the
// largest blocks for which the driver's call is used.
func (b *bench) measurePinning(ctx context.Context) error {
	if kind := b.dev.Properties().Kind; kind != "cuda" {
		b.skip("pinning: cuMemHostAlloc is CUDA's, and this is the %s device", kind)
		return nil
	}
	if b.host < pinned {
		b.skip("pinning %v: data may take %v here", units.Bytes(pinned), b.host)
		return nil
	}
	t := Target{Name: "pinning", Unit: "of cuMemHostAlloc"}
	var slots, blocks []time.Duration
	for range min(b.Runs, 3) { // a run pins two gigabytes
		slot, err := b.pin(ctx, slotBytes)
		if err != nil {
			return err
		}
		block, err := b.pin(ctx, smallBytes)
		if err != nil {
			return err
		}
		slots, blocks = append(slots, slot), append(blocks, block)
		t.Runs = append(t.Runs, float64(slot)/float64(block))
	}
	t.Value = measure.Median(t.Runs)
	t.Detail = fmt.Sprintf("%s in slots of %v, %s in blocks of %v", units.Time(measure.Median(slots)), units.Bytes(slotBytes),
		units.Time(measure.Median(blocks)), units.Bytes(smallBytes))
	b.add(t.atMost(pinningGoal))
	return nil
}

// pin is how long it takes to pin a gibibyte in blocks of that size, to the byte in
// proportion.
func (b *bench) pin(ctx context.Context, block int64) (took time.Duration, err error) {
	err = b.on(func(r *rig.Rig) error {
		start, n := time.Now(), int64(0)
		for ; n < pinned && r.Err() == nil; n += block {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			r.AllocHost(block, device.HostOptions{})
		}
		took = time.Duration(float64(time.Since(start)) * pinned / float64(n))
		return r.Err()
	})
	return took, err
}
