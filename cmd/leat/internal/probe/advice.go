package probe

import (
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/units"
)

// Advice is what the figures say in plain words. What they do not tell is zero.
type Advice struct {
	// Peak is the best rate of pinned H2D copies, and Bytes the least size measured
	// that reaches 90% of it.
	Peak  units.Rate  `json:"peak_bytes_per_second"`
	Bytes units.Bytes `json:"bytes_for_90_percent"`
	// Depth is the least at which a step takes at most 2% longer than at the best.
	Depth int `json:"depth"`
	// Streams is how many streams pay for kernels that leave much of the device idle, and
	// CopyStreams how many do for copies one way.
	Streams     int `json:"streams"`
	CopyStreams int `json:"copy_streams"`
	// SpeedUp is what hiding the copy brings: the step at depth 1 against the one
	// advised. WorthIt is whether that is 5% or more.
	SpeedUp float64 `json:"speed_up"`
	WorthIt bool    `json:"worth_it"`
	// Words are the sentences.
	Words []string `json:"words"`
}

const (
	nearPeak  = 0.9
	nearBest  = 1.02
	worthIt   = 1.05
	streamPay = 1.1
)

func (p *probe) advise() {
	for _, say := range []func() string{p.adviseBytes, p.adviseDepth, p.adviseStreams, p.adviseCopyStreams,
		p.advisePriority, p.adviseGraph, p.adviseMapped, p.advisePeer, p.adviseHiding} {
		if words := say(); words != "" {
			p.Advice.Words = append(p.Advice.Words, words)
		}
	}
}

func (p *probe) adviseBytes() string {
	a := &p.Advice
	for _, c := range p.Copies {
		if c.Way == "H2D" && c.Memory == "pinned" {
			a.Peak = max(a.Peak, c.Rate)
		}
	}
	for _, c := range p.Copies {
		if c.Way == "H2D" && c.Memory == "pinned" && float64(c.Rate) >= nearPeak*float64(a.Peak) {
			a.Bytes = c.Bytes
			return fmt.Sprintf("Copies of %v reach 90%% of the peak, which is %v from pinned memory: smaller batches should travel several to a copy.", a.Bytes, a.Peak)
		}
	}
	return ""
}

// best is the least step, at any depth.
func (p *probe) best() time.Duration {
	best := time.Duration(0)
	for _, d := range p.Pipeline.Depths {
		if best == 0 || d.Step < best {
			best = d.Step
		}
	}
	return best
}

// step is the step at the depth advised.
func (p *probe) step() (Depth, bool) {
	for _, d := range p.Pipeline.Depths {
		if float64(d.Step) <= nearBest*float64(p.best()) {
			return d, true
		}
	}
	return Depth{}, false
}

func (p *probe) adviseDepth() string {
	d, ok := p.step()
	if !ok {
		return ""
	}
	p.Advice.Depth = d.Depth
	if d.Depth == 1 {
		return "Depth 1 will do: nothing is gained by having more than one batch on the device."
	}
	words := fmt.Sprintf("Use Depth %d", d.Depth)
	if d.Depth == 2 {
		words += " where every step takes the same time, and 3, the default, where producers or steps vary"
	}
	return words + fmt.Sprintf(": a step then takes %s.", units.Time(d.Step))
}

func (p *probe) adviseHiding() string {
	d, ok := p.step()
	if !ok || p.Pipeline.Depths[0].Depth != 1 {
		return ""
	}
	a := &p.Advice
	serial := p.Pipeline.Depths[0].Step
	a.SpeedUp = float64(serial) / float64(max(d.Step, 1))
	a.WorthIt = a.SpeedUp >= worthIt
	of := fmt.Sprintf("the copy of %v (%s) behind %s of compute", p.Pipeline.Bytes, units.Time(p.Pipeline.Copy), units.Time(p.Pipeline.Compute))
	if !a.WorthIt {
		return fmt.Sprintf("Hiding %s is hardly worth it: %s a step instead of %s.", of, units.Time(d.Step), units.Time(serial))
	}
	words := fmt.Sprintf("Hiding %s is worth it: %s a step instead of %s, %.2f times as fast.", of, units.Time(d.Step), units.Time(serial), a.SpeedUp)
	if p.Pipeline.Copy > p.Pipeline.Compute {
		words += " The bus is the limit: fewer bytes a batch would help, more depth would not."
	}
	return words
}
