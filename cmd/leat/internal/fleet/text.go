package fleet

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Write writes a table of each pipeline's ranks, the sentences, and the pages that gave no
// answer.
func Write(w io.Writer, pages []Page, verdicts []Verdict) error {
	var b strings.Builder
	for i := range verdicts {
		v := &verdicts[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", v.Pipeline)
		v.table(&b)
		for _, s := range v.Sentences {
			fmt.Fprintf(&b, "%s\n", s)
		}
	}
	for _, p := range pages {
		if p.Report == nil {
			fmt.Fprintf(&b, "no answer from %s: %s\n", p.URL, p.Error)
		} else if len(p.Report.Pipelines) == 0 {
			fmt.Fprintf(&b, "%s shows no pipeline\n", p.URL)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *Verdict) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rank\tnode\tsamples/s\tstep\tit waits\tready\tbottleneck\t  page")
	for i := range v.Ranks {
		r := &v.Ranks[i]
		mark := ""
		if r.URL == v.Slow {
			mark = " <- slow"
		}
		fmt.Fprintf(t, "%d\t%s\t%.0f\t%s\t%s\t%.0f%%\t%s\t  %s%s\n", r.Pipeline.Rank, r.Node, r.Pipeline.Pace.SamplesPerSecond,
			duration(r.step()), duration(r.perStep(own...)), 100*r.Pipeline.Pace.Readiness, r.Pipeline.Explanation.Bottleneck, r.URL, mark)
	}
	t.Flush()
}

// duration is seconds with three digits or so.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	for unit := time.Duration(1); unit < d/1000; unit *= 10 {
		d = d.Round(unit * 10)
	}
	return d.String()
}
