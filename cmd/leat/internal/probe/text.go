package probe

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-go/leat/cmd/leat/internal/units"
)

// String is the report for a terminal of 90 columns.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %v\n", r.Device.Name, r.Device.Description, r.Device.Memory)
	for _, n := range r.Device.Notes {
		b.WriteString(wrapped(n))
	}
	fmt.Fprintf(&b, "%s/%s, %d CPUs, GOMAXPROCS %d, %s, %s\n", r.Machine.OS, r.Machine.Arch, r.Machine.CPUs,
		r.Machine.GOMAXPROCS, r.Machine.Go, r.Date.Format("2006-01-02 15:04 MST"))
	r.copies(&b)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-34s "+format+"\n", append([]any{name}, args...)...)
	}
	if r.Both.Bytes > 0 {
		row(fmt.Sprintf("both directions at once, of %v", r.Both.Bytes), "%12v together", r.Both.Rate)
	}
	b.WriteString("\nCalls\n")
	for _, c := range r.Calls {
		row(c.Name, "%12s", units.Time(c.Time))
	}
	if r.Pinning.Bytes > 0 {
		row(fmt.Sprintf("pin %v", r.Pinning.Bytes), "%12s, %s a MiB", units.Time(r.Pinning.Time), units.Time(r.Pinning.PerMiB))
	}
	b.WriteString("\nSide by side\n")
	if o := r.Overlap; o.Bytes > 0 {
		row(fmt.Sprintf("%d copies of %v, a kernel, both", overlapped, o.Bytes), "%12s %s %s: %.0f%% hidden",
			units.Time(o.Copy), units.Time(o.Kernel), units.Time(o.Together), 100*o.Hidden)
	}
	for _, m := range r.Products {
		row(fmt.Sprintf("two products of %d×%d matrices", m.Side, m.Side), "%12s on one stream, %s on two: %.2f×, same bits",
			units.Time(m.One), units.Time(m.Two), m.SpeedUp)
	}
	for _, w := range r.Streams {
		row(w.Work, "%12s", times(w.Times))
	}
	if r.Priority.Equal > 0 {
		row("a product on a busy device", "%12s, %s in a stream that is served first", units.Time(r.Priority.Equal), units.Time(r.Priority.First))
	}
	if g := r.Graph; g.Kernels > 0 {
		row(fmt.Sprintf("%d short kernels", g.Kernels), "%12s launched, %s replayed as a graph", units.Time(g.Launched), units.Time(g.Replayed))
	}
	if m := r.Mapped; m.Bytes > 0 {
		row(fmt.Sprintf("a kernel reads rows of %v in pinned memory", m.RowBytes), "%12v", m.Rate)
	}
	if o := r.Peer; o.Name != "" {
		row(fmt.Sprintf("copies of %v to %s", o.Bytes, o.Name), "%12v over %s", o.Rate, o.Way)
	}
	if len(r.Pipeline.Depths) > 0 {
		fmt.Fprintf(&b, "\nBatches of %v (a copy takes %s) and %s of compute, through the prefetch API\n",
			r.Pipeline.Bytes, units.Time(r.Pipeline.Copy), units.Time(r.Pipeline.Compute))
	}
	for _, d := range r.Pipeline.Depths {
		row(fmt.Sprintf("depth %d", d.Depth), "%12s a step", units.Time(d.Step))
	}
	list(&b, "Skipped", r.Skipped)
	list(&b, "What it means", r.Advice.Words)
	return b.String()
}

// times are those of the same work on more and more streams.
func times(of []StreamsTime) string {
	var parts []string
	for _, t := range of {
		parts = append(parts, fmt.Sprintf("%s on %d", units.Time(t.Time), t.Streams))
	}
	return strings.Join(parts, ", ")
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, l := range lines {
		b.WriteString(wrapped(l))
	}
}

// wrapped is a paragraph, its first line set out by a dash.
func wrapped(text string) string {
	const width = 88
	var b strings.Builder
	line := "  -"
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line = "   "
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// copies is the table of rates: a row a size, a column a way and a memory.
func (r Report) copies(b *strings.Builder) {
	columns := []struct{ way, memory string }{{"H2D", "pinned"}, {"H2D", "pageable"}, {"D2H", "pinned"}, {"D2H", "pageable"}}
	b.WriteString("\nCopies      ")
	for _, c := range columns {
		fmt.Fprintf(b, " %14s", c.way+" "+c.memory)
	}
	b.WriteString("\n")
	var sizes []units.Bytes
	for _, c := range r.Copies {
		sizes = append(sizes, c.Bytes)
	}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		fmt.Fprintf(b, "  %-10v", size)
		for _, column := range columns {
			i := slices.IndexFunc(r.Copies, func(c Copy) bool { return c.Bytes == size && c.Way == column.way && c.Memory == column.memory })
			if i < 0 {
				fmt.Fprintf(b, " %14s", "-")
				continue
			}
			fmt.Fprintf(b, " %14v", r.Copies[i].Rate)
		}
		b.WriteString("\n")
	}
}
