package probe

import (
	"context"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
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
	var took []time.Duration
	for range pinRuns {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		start := time.Now()
		h, err := p.dev.AllocHost(int64(size), device.HostOptions{Locked: true})
		if err != nil {
			return err
		}
		took = append(took, time.Since(start))
		if err := h.Close(); err != nil {
			return err
		}
	}
	d := measure.Median(took)
	p.Pinning = Pinning{Bytes: size, Time: d, PerMiB: time.Duration(float64(d) / (float64(size) / (1 << 20)))}
	return nil
}
