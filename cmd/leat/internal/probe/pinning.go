package probe

import (
	"context"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

// pinRuns are few, since a run pins a gigabyte.
const pinRuns = 3

// measurePinning pins memory and gives it back. The CPU device needs none, and is
// asked to lock it all the same.
func (p *probe) measurePinning(ctx context.Context, _ *rig.Rig) error {
	size := min(p.PinBytes, p.host)
	if size < p.PinBytes {
		p.skip("pinning %v: this process may pin %v", p.PinBytes, p.host)
	}
	if size/16 > 0 { // what a small part costs tells whether there is time for all
		took, err := p.pin(ctx, size/16)
		if err != nil {
			return err
		}
		whole := size
		for size > whole/16 && p.late(pinRuns*took*time.Duration(size/max(whole/16, 1))) {
			size /= 2
		}
		if size < whole {
			p.skip("pinning more than %v: %s", size, p.why())
		}
	}
	var took []time.Duration
	for range pinRuns {
		d, err := p.pin(ctx, size)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	d := measure.Median(took)
	p.Pinning = Pinning{Bytes: size, Time: d, PerMiB: time.Duration(float64(d) / (float64(size) / (1 << 20)))}
	return nil
}

// pin pins memory once, and gives it back.
func (p *probe) pin(ctx context.Context, size units.Bytes) (time.Duration, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	h, err := p.dev.AllocHost(int64(size), device.HostOptions{Locked: true})
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	return took, h.Close()
}
