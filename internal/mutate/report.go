package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// A report sums up a run.
type report struct {
	verdicts []*verdict
	skipped  map[string]int
	tests    []*test
	stale    []string // listed, and no mutant of these packages
	took     time.Duration
	verbose  bool
}

// unlisted counts the mutants that no test caught and that aren't listed.
func (p *report) unlisted() int {
	n := 0
	for _, v := range p.verdicts {
		if v.alive() && v.listed == nil {
			n++
		}
	}
	return n
}

func (v *verdict) alive() bool { return v.fate == survived || v.fate == notReached }

func (p *report) write(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "package\tkind\tmutants\tcaught\tby time\tby memory\tlisted\tSURVIVED\tNOT REACHED\t")
	type row struct{ pkg, kind string }
	rows := map[row]*[7]int{}
	add := func(r row, column int) {
		if rows[r] == nil {
			rows[r] = new([7]int)
		}
		rows[r][0]++
		rows[r][column]++
	}
	untried := 0
	for _, v := range p.verdicts {
		if v.fate == notTried {
			untried++
			continue
		}
		column := map[fate]int{caught: 1, hung: 2, overgrown: 3, survived: 5, notReached: 6}[v.fate]
		if v.alive() && v.listed != nil {
			column = 4
		}
		add(row{v.Package, v.Kind}, column)
		add(row{v.Package, "~"}, column)
		add(row{"~", ""}, column)
	}
	keys := make([]row, 0, len(rows))
	for r := range rows {
		keys = append(keys, r)
	}
	slices.SortFunc(keys, func(a, b row) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.kind, b.kind)) })
	for _, r := range keys {
		pkg, kind := r.pkg, r.kind
		switch {
		case pkg == "~":
			pkg = "all"
		case kind == "~":
			kind = "all"
		}
		fmt.Fprintf(t, "%s\t%s\t", pkg, kind)
		for _, n := range rows[r] {
			fmt.Fprintf(t, "%d\t", n)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	for _, reason := range sortedKeys(p.skipped) {
		fmt.Fprintf(w, "skipped: %d × %s\n", p.skipped[reason], reason)
	}
	if untried > 0 {
		fmt.Fprintf(w, "%d mutants were not tried\n", untried)
	}
	fmt.Fprintf(w, "%d tests, %v\n", len(p.tests), p.took.Round(time.Second))
	for _, x := range p.tests {
		if x.broken != "" {
			fmt.Fprintf(w, "left out: %s of %s %s\n", x.name, x.pkg.Package, x.broken)
		}
		if x.noRace {
			fmt.Fprintf(w, "left out under the race detector, where it fails: %s of %s\n", x.name, x.pkg.Package)
		}
	}
	for _, v := range p.verdicts {
		switch {
		case v.alive() && v.listed == nil:
			fmt.Fprintf(w, "\n%s/%s:%d: mutant %d %s (%d tests pass it)\n%s\n", v.Package, v.File, v.Line, v.Number,
				map[fate]string{survived: "survived", notReached: "was not reached"}[v.fate], v.judges, v.Key())
		case v.fate == notTried:
		case !v.alive() && v.listed != nil:
			fmt.Fprintf(w, "\nlisted in line %d, but caught by %s:\n%s\n", v.listed.line, v.by, v.Key())
		case !v.alive() && p.verbose:
			fmt.Fprintf(w, "\ncaught by %s:\n%s\n", v.by, v.Key())
		}
	}
	for _, key := range p.stale {
		fmt.Fprintf(w, "\nlisted, but there is no such mutant:\n%s\n", key)
	}
}
