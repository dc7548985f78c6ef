package group

import (
	"fmt"
	"strings"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Plan is everything that was decided for a Group or a Pool before the first batch.
type Plan struct {
	// Devices are the plans of the devices' pipelines, in the order of New's streams.
	Devices []prefetch.Plan
	// Workers is the number of goroutines that read samples, Goroutines all that run at
	// most, HostBytes the memory of the host slots and DeviceBytes that on the devices: of
	// all devices together.
	Workers, Goroutines    int
	HostBytes, DeviceBytes int64
	// BatchSize is the rows that all devices take together in a step of a Group, and that
	// one takes of a Pool. BatchBytes is their size.
	BatchSize  int
	BatchBytes int64
	// Notes are other decisions, one sentence each.
	Notes []string
}

// Plan says what was decided. It doesn't change.
func (g *Group) Plan() Plan { return g.plan }

func makePlan(g *Group, o prefetch.Options) Plan {
	p := sumPlans(g.members)
	p.BatchSize = g.loader.BatchSize()
	p.BatchBytes = int64(len(p.Devices)) * p.Devices[0].BatchBytes
	p.note(g.loader, o)
	return p
}

// note notes how what the devices share was divided.
func (p *Plan) note(ld *loader.Loader, o prefetch.Options) {
	if want := ld.Workers(); p.Workers > want {
		p.Notes = append(p.Notes, fmt.Sprintf("%d workers instead of %d: each device's pipeline has one at least", p.Workers, want))
	}
	if first := p.Devices[0]; o.Memory.HostSlots == 0 && len(p.Devices) > 1 && first.BatchBytes >= largeBatch {
		p.Notes = append(p.Notes, fmt.Sprintf("%d host slots for each device: 128 MiB are for all together, and %d slots are the fewest", first.HostSlots, leastHostSlots))
	}
}

// sumPlans is the plans of several pipelines and what they are together.
func sumPlans(members []*prefetch.Prefetcher) (p Plan) {
	for _, pf := range members {
		one := pf.Plan()
		p.Devices = append(p.Devices, one)
		p.Workers += one.Workers
		p.Goroutines += one.Goroutines
		p.HostBytes += one.HostBytes
		p.DeviceBytes += one.DeviceBytes
	}
	return p
}

// String is the plan for a person.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d devices, %d rows a batch, %d bytes\n", len(p.Devices), p.BatchSize, p.BatchBytes)
	fmt.Fprintf(&b, "together: %d workers, %d goroutines, %d bytes of host slots, %d bytes on devices\n",
		p.Workers, p.Goroutines, p.HostBytes, p.DeviceBytes)
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for i, d := range p.Devices {
		fmt.Fprintf(&b, "device %d\n", i)
		for line := range strings.Lines(d.String()) {
			b.WriteString("    " + line)
		}
	}
	return b.String()
}
