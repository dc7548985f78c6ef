package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/leat-go/leat/cmd/leat/internal/found"
	"github.com/leat-go/leat/loader"
)

// Options says what is looked at.
type Options struct {
	// Samples is how many are shown, from From on.
	Samples, From int
	// Statistics reads all samples, or Limit of them if that is not 0, and counts what they
	// have.
	Statistics bool
	Limit      int
	// Color draws pictures in colours, for a terminal that has them.
	Color bool
	// Batch is the size of batches in the program. 0 means 32.
	Batch int
}

// Validate reports all mistakes at once.
func (o Options) Validate() error {
	var errs []error
	for _, n := range []struct {
		name string
		v    int
	}{{"Samples", o.Samples}, {"From", o.From}, {"Limit", o.Limit}, {"Batch", o.Batch}} {
		if n.v < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, want 0 or more", n.name, n.v))
		}
	}
	return errors.Join(errs...)
}

// A Report is what was seen.
type Report struct {
	Set *found.Set
	// Scan is what all samples have, nil if it was not asked for.
	Scan *Scan

	samples string
	batch   int
}

// Run looks at a Set.
func Run(ctx context.Context, set *found.Set, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Report{Set: set, batch: o.Batch}
	if r.batch == 0 {
		r.batch = 32
	}
	read, err := newReader(set.Data, set.Fields)
	if err != nil {
		return nil, err
	}
	var shown []string
	for i := min(o.From, set.Len()); i < min(o.From+o.Samples, set.Len()); i++ {
		err := read.read(ctx, i)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		shown = append(shown, sampleText(set, read, i, err, o.Color))
	}
	r.samples = strings.Join(shown, "\n")
	if o.Statistics {
		if r.Scan, err = scan(ctx, set.Data, set.Fields, o.Limit); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// sampleText is one sample: a line a field, pictures last.
func sampleText(set *found.Set, r *reader, index int, err error, color bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "sample %d%s\n", index, from(set.Origin(index)))
	if err != nil {
		fmt.Fprintf(&b, "  can't be read: %v\n", err)
		return b.String()
	}
	width := nameWidth(set.Fields)
	var pictures strings.Builder
	for _, f := range set.Fields {
		g, ok := asPicture(f)
		if !ok {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, f.Name, r.text(f, set.Names[f.Name]))
			continue
		}
		fmt.Fprintf(&pictures, "  %s\n", f.Name)
		for _, line := range g.draw(r.values(f), color) {
			fmt.Fprintf(&pictures, "%s\n", strings.TrimRight("    "+line, " "))
		}
	}
	return b.String() + pictures.String()
}

// from is where a sample comes from, in brackets.
func from(o loader.Origin) string {
	if o == (loader.Origin{}) {
		return ""
	}
	return " (" + o.String() + ")"
}

func nameWidth(fields []loader.Field) (width int) {
	for _, f := range fields {
		width = max(width, len(f.Name))
	}
	return width
}

// String is the report for people.
func (r *Report) String() string {
	var b strings.Builder
	s := r.Set
	fmt.Fprintf(&b, "%s: %s", s.Path, s.Format)
	if n := len(s.Files); n > 1 || n == 1 && s.Files[0].Name() != s.Path {
		fmt.Fprintf(&b, ", %d files", n)
	}
	if s.Bytes >= 0 {
		fmt.Fprintf(&b, ", %s", humanize.Bytes(uint64(s.Bytes)))
	}
	fmt.Fprintf(&b, "\n%s samples of\n", humanize.Comma(int64(s.Len())))
	for _, f := range s.Fields {
		fmt.Fprintf(&b, "  %s", f)
		if names := s.Names[f.Name]; names != nil {
			fmt.Fprintf(&b, "  %s", list(names))
		}
		b.WriteByte('\n')
	}
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if r.samples != "" {
		b.WriteString("\n" + r.samples)
	}
	if r.Scan != nil {
		b.WriteString("\n" + r.Scan.text(s.Names))
	}
	b.WriteString("\nto load it, where each err is looked at (as in the program that -go prints):\n\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(s.Lines(r.batch), "\n"), "\n") {
		b.WriteString(strings.TrimRight("\t"+line, "\t") + "\n")
	}
	return b.String()
}

// list is the first of some names.
func list(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" … %d in all", len(names))
	}
	return strings.Join(names, ", ")
}

// text is what a scan has found.
func (s *Scan) text(names map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "statistics of %s samples\n", humanize.Comma(s.Samples))
	var fields []loader.Field
	for _, f := range s.Fields {
		fields = append(fields, f.Field)
	}
	width := nameWidth(fields)
	for _, f := range s.Fields {
		for _, line := range f.text(names[f.Field.Name]) {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, f.Field.Name, line)
		}
	}
	if s.Unreadable == 0 {
		b.WriteString("problems: none\n")
		return b.String()
	}
	fmt.Fprintf(&b, "problems: samples that can't be read: %s\n", humanize.Comma(s.Unreadable))
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "  %d%s: %v\n", p.Index, from(p.Origin), p.Err)
	}
	if more := s.Unreadable - int64(len(s.Problems)); more > 0 {
		fmt.Fprintf(&b, "  and %s more\n", humanize.Comma(more))
	}
	return b.String()
}

// text is what is known of a field, in lines.
func (s *FieldStatistics) text(names []string) (lines []string) {
	if s.Lengths != nil {
		l := s.Lengths
		lines = append(lines, fmt.Sprintf("lengths: least %d, median %d, 90%% up to %d, 99%% up to %d, most %d",
			l.Quantile(0), l.Quantile(0.5), l.Quantile(0.9), l.Quantile(0.99), l.Quantile(1)))
	}
	if len(s.Counts) > 0 {
		return append(lines, counts(s.Counts, names))
	}
	_, picture := asPicture(s.Field)
	for i, m := range s.Channels {
		channel := ""
		if len(s.Channels) > 1 {
			channel = fmt.Sprintf("channel %d: ", i)
		}
		line := fmt.Sprintf("%s%s to %s, mean %.5g, deviation %.5g", channel, number(m.Min), number(m.Max), m.Mean, m.Deviation())
		if picture && s.Field.DType.Size() == 1 {
			line += fmt.Sprintf(" (of 1: %.4f, %.4f)", m.Mean/255, m.Deviation()/255)
		}
		if m.NotFinite > 0 {
			line += fmt.Sprintf(", %s not finite", humanize.Comma(m.NotFinite))
		}
		lines = append(lines, line)
	}
	return lines
}

// counts are how many samples have each value, those that come most first if there are many.
func counts(c Count, names []string) string {
	const most = 20
	values := slices.Sorted(maps.Keys(c))
	if len(values) > most {
		slices.SortStableFunc(values, func(a, b int64) int { return int(min(max(c[b]-c[a], -1), 1)) })
	}
	var parts []string
	for _, v := range values[:min(most, len(values))] {
		name := fmt.Sprint(v)
		if v >= 0 && v < int64(len(names)) {
			name += " (" + names[v] + ")"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, c[v]))
	}
	text := fmt.Sprintf("%d values: %s", len(values), strings.Join(parts, ", "))
	if len(values) > most {
		text += fmt.Sprintf(" … from %d to %d", slices.Min(values), slices.Max(values))
	}
	return text
}
