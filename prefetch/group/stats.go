package group

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/prefetch"
)

// Stats is what a Group counted since New.
type Stats struct {
	// Steps, Samples and Bytes were delivered, over all devices.
	Steps, Samples, Bytes int64
	// Wait is how long Next waited for a step, and Body how long you worked between two
	// calls. The batches of a step are waited for in the order of the devices: what
	// Devices[i].Wait has more is the time for which device i held up a step that the
	// devices before it were ready for.
	Wait, Body time.Duration
	// Devices are the pipelines' own. Their Body is from one batch to the next call for one,
	// and has waits for other devices in it.
	Devices []prefetch.Stats
	// Shares are what each device has done of a Pool's batches; nil of a Group.
	Shares []Share
}

// A Share is what one device of a Pool has done.
type Share struct {
	// Batches is how many results it has given.
	Batches int64
	// StepTime is how long it takes for one, as measured last; 0 before the first.
	StepTime time.Duration
	// Lost is why it has failed, nil if it has not.
	Lost *DeviceError
}

// counters are what a Group counts by itself.
type counters struct{ steps, wait, body atomic.Int64 }

func (c *counters) delivered(wait time.Duration) {
	c.steps.Add(1)
	c.wait.Add(int64(wait))
}

// Stats returns what was counted so far. It allocates.
func (g *Group) Stats() Stats {
	s := Stats{
		Steps: g.counters.steps.Load(), Wait: time.Duration(g.counters.wait.Load()),
		Body: time.Duration(g.counters.body.Load()),
	}
	s.Devices, s.Samples, s.Bytes = sumStats(g.members)
	return s
}

// Stats returns what was counted so far: a step is a batch. It allocates.
func (p *Pool) Stats() Stats {
	s := Stats{
		Steps: p.counters.steps.Load(), Wait: time.Duration(p.counters.wait.Load()),
		Body: time.Duration(p.counters.body.Load()),
	}
	s.Devices, s.Samples, s.Bytes = sumStats(p.members)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Shares = slices.Clone(p.tallies)
	return s
}

// tally counts a result of device i.
func (p *Pool) tally(i int, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tallies[i].Batches++
	p.tallies[i].StepTime = took
}

// sumStats is what several pipelines counted.
func sumStats(members []*prefetch.Prefetcher) (all []prefetch.Stats, samples, bytes int64) {
	for _, pf := range members {
		one := pf.Stats()
		all = append(all, one)
		samples, bytes = samples+one.Samples, bytes+one.Bytes
	}
	return all, samples, bytes
}

// String is the table of who waited for whom.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d steps, %d samples, %d bytes\n", s.Steps, s.Samples, s.Bytes)
	yours := s.Body + s.Wait
	row := func(d time.Duration, format string, args ...any) {
		fmt.Fprintf(&b, "%-60s %12v", fmt.Sprintf(format, args...), d.Round(time.Microsecond))
		if yours > 0 {
			fmt.Fprintf(&b, " %6.1f%%", 100*d.Seconds()/yours.Seconds())
		}
		b.WriteByte('\n')
	}
	row(s.Body, "you worked on steps")
	if s.Shares != nil {
		row(s.Wait, "you waited for results")
	}
	for i, share := range s.Shares {
		fmt.Fprintf(&b, "device %d (%s) has done %d batches, %v each", i, s.Devices[i].Device, share.Batches, share.StepTime.Round(time.Microsecond))
		if share.Lost != nil {
			fmt.Fprintf(&b, ", and has failed: %v", share.Lost.Err)
		}
		b.WriteByte('\n')
	}
	for i, d := range s.Devices {
		if s.Shares != nil {
			break
		}
		row(d.Wait(), "you waited for device %d (%s)", i, d.Device)
	}
	return b.String()
}
