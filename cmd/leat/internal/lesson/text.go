package lesson

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/timeline"
)

// columns is the width of a drawing, beside the engines' names.
const columns = 72

// String is the lesson for a terminal of 90 columns.
func (l Lesson) String() string {
	var b strings.Builder
	o := l.Options
	fmt.Fprintf(&b, "A modelled card: a batch takes %v to copy in (H2D), %v to compute, %v to copy out (D2H).\n", o.H2D, o.Compute, o.D2H)
	if o.Engines == 1 {
		b.WriteString("One engine copies in both directions, in turn; one computes.\n")
	} else {
		b.WriteString("One engine copies in, one computes, one copies out.\n")
	}
	b.WriteString("Digits are batches, the last digit of their numbers; a dot is a bubble: an idle engine.\n")
	for _, p := range l.Parts {
		l.draw(&b, p)
		l.table(&b, p)
	}
	b.WriteString("\n" + l.Verdict() + "\n")
	if late := l.late(); late > 0 {
		fmt.Fprintf(&b, "(Left out: synchronous, this machine's host woke up %v late in all.)\n", late.Round(time.Microsecond))
	}
	return b.String()
}

func (l Lesson) draw(b *strings.Builder, p Part) {
	longest := p.Schedules[Synchronous].Total()
	column := timeline.Column(longest, columns)
	fmt.Fprintf(b, "\n%s, one column is %v\n", count(p.Batches, "batch", "batches"), column)
	how := [...]string{
		Synchronous:    "the host waits for every call",
		OneStream:      "the host submits everything and waits once",
		SeveralStreams: "the same, batches on streams in turn",
	}
	for _, s := range p.Schedules {
		fmt.Fprintf(b, "\n  %s: %s\n", l.Options.name(s.Way), how[s.Way])
		s.draw(b, l.Options.engines(), column)
	}
}

// draw draws what the engines did, a row for each.
func (s Schedule) draw(b *strings.Builder, engines []string, column time.Duration) {
	drawing := timeline.Draw(s.rows(engines), s.Total(), column)
	b.WriteString("    " + strings.ReplaceAll(strings.TrimSuffix(drawing, "\n"), "\n", "\n    ") + "\n")
}

func (s Schedule) rows(engines []string) []timeline.Row {
	var rows []timeline.Row
	for _, engine := range engines {
		row := timeline.Row{Name: engine}
		for _, span := range s.Spans {
			if span.Engine == engine {
				row.Spans = append(row.Spans, timeline.Span{Start: span.Start, End: span.End, Label: rune('0' + (span.Batch+1)%10)})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// table compares the ways: what they took, what was expected, and who was idle.
func (l Lesson) table(b *strings.Builder, p Part) {
	engines := l.Options.engines()
	fmt.Fprintf(b, "\n  %-12s %8s %9s %9s %8s %6s  bubble:", "", "total", "expected", "speed-up", "cycle", "waits")
	for _, e := range engines {
		fmt.Fprintf(b, " %7s", e)
	}
	b.WriteString("\n")
	for _, s := range p.Schedules {
		fmt.Fprintf(b, "  %-12s %8v %9s %9s %8v %6d         ", l.Options.name(s.Way), s.Total(), l.expected(s),
			times(p.Schedules[Synchronous].Total(), s.Total()), s.Cycle(), s.Waits)
		for _, e := range engines {
			fmt.Fprintf(b, " %6.1f%%", 100*s.Bubble(e))
		}
		b.WriteString("\n")
	}
}

// expected is what the textbook says: all stages of all batches one after the
// other, or the busiest engine without a bubble once the first batch has reached
// it. It has no word on copies that share an engine or on too few streams.
func (l Lesson) expected(s Schedule) string {
	o, n := l.Options, time.Duration(s.Batches)
	switch {
	case s.Way != SeveralStreams || o.Depth == 1:
		return (n * o.serial()).String()
	case o.Engines == 1 || time.Duration(o.Depth)*o.busiest() < o.serial():
		return "-"
	}
	return (o.serial() + (n-1)*o.busiest()).String()
}

// worth is the speed-up from which hiding the copies is called worth it.
const worth = 1.05

// Verdict says whether hiding the copies is worth it, and what limits it then.
func (l Lesson) Verdict() string {
	last := l.Parts[len(l.Parts)-1]
	before, after := last.Schedules[Synchronous].Cycle(), last.Schedules[SeveralStreams].Cycle()
	gain := float64(before) / float64(max(after, 1))
	if gain < worth {
		return fmt.Sprintf("Hiding the copies is hardly worth it: a batch every %v instead of every %v.\n%s", after, before, l.limit(last))
	}
	return fmt.Sprintf("Hiding the copies is worth it: a batch every %v instead of every %v, %s as fast.\n%s",
		after, before, times(before, after), l.limit(last))
}

// limit says what stands in the way of more.
func (l Lesson) limit(p Part) string {
	o := l.Options
	s := p.Schedules[SeveralStreams]
	busiest, most := "", time.Duration(-1)
	for _, e := range o.engines() {
		if busy := s.Busy(e); busy > most {
			busiest, most = e, busy
		}
	}
	switch perBatch := most / time.Duration(s.Batches); {
	case s.Batches == 1:
		return "With one batch there is nothing to hide it behind: try more."
	case s.Cycle() > perBatch:
		return fmt.Sprintf("No engine is busy all the time: %s on the card at once, %s.",
			count(o.Depth, "batch", "batches"), tooFew(o))
	case busiest == "compute":
		return "Compute has no bubble left between its first batch and its last: only faster compute would help."
	}
	return fmt.Sprintf("The %s engine is the limit: fewer bytes a batch would help, more streams would not.", busiest)
}

// tooFew says why a pipeline is slower than its busiest engine.
func tooFew(o Options) string {
	need := int((o.serial() + o.busiest() - 1) / o.busiest())
	if o.Depth < need {
		return fmt.Sprintf("and it takes %d to keep the busiest one busy", need)
	}
	return "and copies in both directions wait for each other"
}

// late is how late the host woke up in all parts.
func (l Lesson) late() time.Duration {
	var sum time.Duration
	for _, p := range l.Parts {
		sum += p.Schedules[Synchronous].Late
	}
	return sum
}

// times is how many times as fast.
func times(before, after time.Duration) string {
	ratio := float64(before) / float64(after)
	return fmt.Sprintf("%.2f×", math.Round(100*ratio)/100)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
