package probe

import (
	"fmt"
	"strings"

	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

func (p *probe) adviseStreams() string {
	if len(p.Products) == 0 {
		return ""
	}
	p.Advice.Streams = 1
	var pay, not []string
	for _, m := range p.Products {
		size := fmt.Sprintf("%d×%d (%.2f×)", m.Side, m.Side, m.SpeedUp)
		if m.SpeedUp >= streamPay {
			pay = append(pay, size)
		} else {
			not = append(not, size)
		}
	}
	if len(pay) == 0 {
		return fmt.Sprintf("One stream for compute is enough: two do not pay for products of %s.", strings.Join(not, " and "))
	}
	p.Advice.Streams = 2
	words := fmt.Sprintf("Two streams for compute pay for products of %s", strings.Join(pay, " and "))
	if len(not) > 0 {
		words += fmt.Sprintf(", which leave much of the device idle, and not for %s", strings.Join(not, " and "))
	}
	if n, gain := p.paying(0); n > 2 {
		p.Advice.Streams = n
		words += fmt.Sprintf("; the smallest go on gaining up to %d streams (%.2f×)", n, gain)
	}
	return words + "."
}

// paying is the least number of streams on which some work takes hardly longer than on
// the best, and how many times as fast that is as one; 1 where one is near it.
func (p *probe) paying(work int) (streams int, gain float64) {
	if work >= len(p.Streams) {
		return 0, 0
	}
	times := p.Streams[work].Times
	best := times[0].Time
	for _, t := range times {
		best = min(best, t.Time)
	}
	if float64(times[0].Time) < streamPay*float64(best) {
		return 1, 1
	}
	for _, t := range times {
		if float64(t.Time) <= nearBest*float64(best) {
			return t.Streams, float64(times[0].Time) / float64(max(t.Time, 1))
		}
	}
	return 1, 1
}

func (p *probe) adviseCopyStreams() string {
	n, gain := p.paying(1)
	switch p.Advice.CopyStreams = n; n {
	case 0:
		return ""
	case 1:
		return "One stream for copies is enough: more do not pay."
	}
	return fmt.Sprintf("%d streams for copies pay: %s are %.2f times as fast as on one.", n, p.Streams[1].Work, gain)
}

func (p *probe) advisePriority() string {
	r := p.Priority
	if r.Equal == 0 {
		return ""
	}
	took := fmt.Sprintf("%s in a stream that is served first, and %s in one like all others", units.Time(r.First), units.Time(r.Equal))
	if float64(r.Equal) < streamPay*float64(r.First) {
		return fmt.Sprintf("Priorities make little difference: on a busy device a product takes %s.", took)
	}
	return fmt.Sprintf("Priorities help what others wait for: on a busy device a product takes %s.", took)
}

func (p *probe) adviseGraph() string {
	g := p.Graph
	if g.Kernels == 0 {
		return ""
	}
	took := fmt.Sprintf("%d short kernels take %s replayed and %s launched one by one", g.Kernels, units.Time(g.Replayed), units.Time(g.Launched))
	if float64(g.Launched) < streamPay*float64(g.Replayed) || g.Replayed == 0 {
		return fmt.Sprintf("Capturing steps as graphs gains little here: %s.", took)
	}
	return fmt.Sprintf("Steps of short kernels are worth capturing as graphs: %s.", took)
}

func (p *probe) adviseMapped() string {
	if p.Mapped.Bytes == 0 || p.Advice.Peak == 0 {
		return ""
	}
	share := float64(p.Mapped.Rate) / float64(p.Advice.Peak)
	words := fmt.Sprintf("A kernel reads rows of %v in pinned memory at %v, %.0f%% of the best copy", p.Mapped.RowBytes, p.Mapped.Rate, 100*share)
	if share >= nearPeak/2 {
		return words + ": rows that change with every batch need not be gathered by the host."
	}
	return words + ": gather on the host, and copy."
}

func (p *probe) advisePeer() string {
	o := p.Report.Peer
	if o.Name == "" {
		return ""
	}
	words := fmt.Sprintf("Copies to %s go over %s, at %v", o.Name, o.Way, o.Rate)
	if o.Way == device.ThroughHost.String() {
		words += ": results that devices exchange are to be few"
	}
	if o.Why != "" {
		words += " (" + o.Why + ")"
	}
	return words + "."
}
