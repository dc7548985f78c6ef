package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

// A probe is a report in the making.
type probe struct {
	Options
	Report
	dev *device.Device
	clock
	// host and memory are how much memory on either side may be used at once.
	host, memory units.Bytes
}

// Run measures dev, which stays the caller's and must be idle. date is when that
// is. Contents that arrive other than they were sent are an error.
func Run(ctx context.Context, dev *device.Device, date time.Time, o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, fmt.Errorf("probe: %w", err)
	}
	p := &probe{Options: o.withDefaults(), dev: dev}
	p.Report = Report{Date: date, Machine: ThisMachine(), Device: Describe(dev)}
	free, _, err := dev.Memory()
	if err != nil {
		return Report{}, fmt.Errorf("probe: %w", err)
	}
	p.host, p.memory = units.Bytes(pinnedpool.DefaultBudget()), units.Bytes(free)/2
	parts := []struct {
		name    string
		weight  int // of its share of the time
		measure func(context.Context, *rig.Rig) error
	}{
		{"calls", 1, p.measureCalls},
		{"copies", 4, p.measureCopies},
		{"both directions", 1, p.measureBoth},
		{"overlap", 1, p.measureOverlap},
		{"pinning", 1, p.measurePinning},
		{"matrix products", 2, p.measureProducts},
		{"streams", 1, p.measureStreams},
		{"priorities", 1, p.measurePriority},
		{"a graph", 1, p.measureGraph},
		{"reads of pinned memory", 1, p.measureMapped},
		{"copies to another device", 1, p.measurePeer},
		{"the pipeline", 5, p.measurePipeline},
	}
	weights := 0
	for _, part := range parts {
		weights += part.weight
	}
	p.clock = newClock(p.Time, weights)
	for _, part := range parts {
		p.begin(part.weight)
		if err := p.part(ctx, part.name, part.measure); err != nil {
			return Report{}, err
		}
	}
	if p.hurried {
		p.skip("some of the %d runs that a median is taken of: %s", p.Runs, p.why())
	}
	p.Device.Notes = dev.Notes() // some are made on the way
	p.advise()
	return p.Report, nil
}

// part measures on a rig of its own. What there is no memory for is skipped.
func (p *probe) part(ctx context.Context, name string, measure func(context.Context, *rig.Rig) error) error {
	r := rig.New(p.dev)
	err := measure(ctx, r)
	freed := r.Close()
	if errors.Is(err, device.ErrOutOfMemory) && freed == nil {
		p.skip("%s: %v", name, err)
		return nil
	}
	if err := errors.Join(err, freed); err != nil {
		return fmt.Errorf("probe: %s: %w", name, err)
	}
	return nil
}

func (p *probe) skip(format string, args ...any) {
	p.Skipped = append(p.Skipped, fmt.Sprintf(format, args...))
}

// largest is the largest copy, no larger than most, that fits twice on the host
// and once on the device.
func (p *probe) largest(most units.Bytes) units.Bytes {
	return min(most, p.MaxBytes, p.host/2, p.memory) &^ 7
}
