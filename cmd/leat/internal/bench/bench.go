package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/probe"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

// A bench is a report in the making.
type bench struct {
	Options
	Report
	dev  *device.Device
	host units.Bytes // how much memory data may take
}

// parts are what there is to measure, in order.
var parts = []struct {
	name    string
	measure func(*bench, context.Context) error
}{
	{"overlap", (*bench).measureOverlap},
	{"stages", (*bench).measureStages},
	{"images", (*bench).measureImages},
	{"samples", (*bench).measureSamples},
	{"next", (*bench).measureNext},
	{"recycler", (*bench).measureRecycler},
	{"pinning", (*bench).measurePinning},
}

// Parts are the names of what there is to measure.
func Parts() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// Run measures dev, which stays the caller's and must be idle. date is when that
// is. Contents that arrive other than they were sent are an error; a target that is
// missed is none.
func Run(ctx context.Context, dev *device.Device, date time.Time, o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, fmt.Errorf("bench: %w", err)
	}
	b := &bench{Options: o.withDefaults(), dev: dev, host: units.Bytes(pinnedpool.DefaultBudget())}
	b.Report = Report{Date: date, Machine: probe.ThisMachine(), Device: probe.Describe(dev)}
	for _, p := range parts {
		if len(b.Only) > 0 && !slices.Contains(b.Only, p.name) {
			continue
		}
		err := p.measure(b, ctx)
		if errors.Is(err, device.ErrOutOfMemory) {
			b.skip("%s: %v", p.name, err)
			continue
		}
		if err != nil {
			return Report{}, fmt.Errorf("bench: %s: %w", p.name, err)
		}
	}
	b.Device.Notes = dev.Notes() // some are made on the way
	return b.Report, nil
}

func (b *bench) skip(format string, args ...any) {
	b.Skipped = append(b.Skipped, fmt.Sprintf(format, args...))
}

func (b *bench) add(t Target) { b.Targets = append(b.Targets, t) }

// on gives f a rig that is closed afterwards.
func (b *bench) on(f func(*rig.Rig) error) error {
	r := rig.New(b.dev)
	return errors.Join(f(r), r.Close())
}

// buffers are how many pinned buffers the copies of a run take in turn, as a
// pipeline's do: a processor's cache would serve a single one faster.
const buffers = 4

// copyTime is how long a pinned H2D copy of so many bytes takes among copies back
// to back: the bus's own time.
func (b *bench) copyTime(ctx context.Context, bytes int64) (took time.Duration, err error) {
	err = b.on(func(r *rig.Rig) error {
		s, memory := r.Stream("copy"), r.Alloc(bytes)
		host := r.AllocHost(buffers*bytes, device.HostOptions{})
		watch := measure.NewStopwatch(r, s)
		if r.Err() != nil {
			return r.Err()
		}
		feed.Random(host)
		const copies = 16 * buffers
		i := int64(0)
		took, err = watch.Median(ctx, b.Runs, measure.Repeat(copies, func() error {
			i = (i + 1) % buffers
			return s.CopyH2D(memory, host[i*bytes:(i+1)*bytes])
		}))
		took /= copies
		return err
	})
	return took, err
}
