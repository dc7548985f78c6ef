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
	for _, part := range []struct {
		name    string
		measure func(context.Context, *rig.Rig) error
	}{
		{"calls", p.measureCalls},
		{"copies", p.measureCopies},
		{"both directions", p.measureBoth},
		{"overlap", p.measureOverlap},
		{"pinning", p.measurePinning},
		{"matrix products", p.measureProducts},
		{"the pipeline", p.measurePipeline},
	} {
		if err := p.part(ctx, part.name, part.measure); err != nil {
			return Report{}, err
		}
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
