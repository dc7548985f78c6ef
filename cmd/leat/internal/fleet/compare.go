package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/observe/ui"
)

// A Rank is one pipeline of one page.
type Rank struct {
	URL      string
	Node     string
	Process  int
	Pipeline ui.Pipeline
}

// name is the rank's name for people.
func (r *Rank) name() string {
	if r.Pipeline.Ranks > 1 {
		return fmt.Sprintf("rank %d on %s", r.Pipeline.Rank, r.Node)
	}
	return fmt.Sprintf("%s on %s", r.URL, r.Node)
}

// perStep is what the causes took of a step, in seconds.
func (r *Rank) perStep(causes ...journal.Cause) (sum float64) {
	for _, p := range r.Pipeline.Account.Parts {
		if slices.Contains(causes, journal.Cause(p.Cause)) {
			sum += p.Seconds
		}
	}
	return sum / float64(max(r.Pipeline.Account.Steps, 1))
}

func (r *Rank) step() float64 { return r.perStep(journal.Causes[:]...) }

// own are the causes of waits that are a rank's own: other ranks have no part in them.
var own = []journal.Cause{journal.Producers, journal.Order, journal.HostSlot, journal.Leases, journal.Copy, journal.Transform}

// work is where waiting for other ranks hides.
var work = []journal.Cause{journal.Device, journal.Body}

// A Verdict says which rank of a pipeline holds up the others.
type Verdict struct {
	// Pipeline is its name on the pages, Ranks those that have it, by rank.
	Pipeline string `json:"pipeline"`
	Ranks    []Rank `json:"-"`
	// Slow is the URL of the rank that holds up the others, empty if none does. Stage is what
	// it waits for or works on, a journal.Cause, and Excess for how many seconds a step longer
	// than half of the others.
	Slow   string  `json:"slow,omitempty"`
	Stage  string  `json:"stage,omitempty"`
	Excess float64 `json:"excess_seconds,omitempty"`
	// Node is the node of the slow rank, if all its ranks are slow, and others are not.
	Node string `json:"node,omitempty"`
	// Sentences say the same.
	Sentences []string `json:"sentences"`
}

// Compare compares the ranks of each pipeline, which the pages call by the same name.
func Compare(pages []Page) (all []Verdict) {
	for _, page := range pages {
		if page.Report == nil {
			continue
		}
		for _, p := range page.Report.Pipelines {
			i := slices.IndexFunc(all, func(v Verdict) bool { return v.Pipeline == p.Name })
			if i < 0 {
				i = len(all)
				all = append(all, Verdict{Pipeline: p.Name})
			}
			all[i].Ranks = append(all[i].Ranks, Rank{page.URL, page.Report.Node, page.Report.Process, p})
		}
	}
	for i := range all {
		all[i].judge()
	}
	return all
}

// enough is the share of a step from which on a difference is told.
const enough = 0.05

// judge finds the slow rank.
func (v *Verdict) judge() {
	slices.SortStableFunc(v.Ranks, func(a, b Rank) int { return cmp.Compare(a.Pipeline.Rank, b.Pipeline.Rank) })
	var running []*Rank
	for i := range v.Ranks {
		if v.Ranks[i].Pipeline.Account.Steps > 0 {
			running = append(running, &v.Ranks[i])
		}
	}
	switch {
	case len(running) < len(v.Ranks):
		v.Sentences = append(v.Sentences, fmt.Sprintf("%d of %d ranks made no step in this time.", len(v.Ranks)-len(running), len(v.Ranks)))
	case len(running) == 1:
		v.Sentences = append(v.Sentences, "There is one rank, and nothing to compare it with.")
	}
	if len(running) < 2 {
		return
	}
	excess := func(r *Rank, causes ...journal.Cause) float64 {
		return r.perStep(causes...) - median(running, r, causes)
	}
	slow := slices.MaxFunc(running, func(a, b *Rank) int { return cmp.Compare(excess(a, own...), excess(b, own...)) })
	causes, together := own, true
	if excess(slow, own...) < enough*slow.step() {
		slow = slices.MaxFunc(running, func(a, b *Rank) int { return cmp.Compare(a.step(), b.step()) })
		causes, together = work, false
		if excess(slow, journal.Causes[:]...) < enough*slow.step() {
			v.Sentences = append(v.Sentences, "No rank holds up the others: their steps are equally long, and so is what they wait for.")
			return
		}
	}
	stage := slices.MaxFunc(causes, func(a, b journal.Cause) int { return cmp.Compare(excess(slow, a), excess(slow, b)) })
	v.Slow, v.Stage, v.Excess = slow.URL, string(stage), excess(slow, stage)
	v.tell(slow, stage, together)
	v.judgeNode(running, slow, func(r *Rank) bool { return excess(r, causes...) >= enough*r.step() })
}

func (v *Verdict) tell(slow *Rank, stage journal.Cause, together bool) {
	does := "waits for " + words[stage]
	if !together {
		does = "has work in " + words[stage]
	}
	v.Sentences = append(v.Sentences, fmt.Sprintf("%s is the slow one: a step %s for %s, %s longer than half of the others.",
		upper(slow.name()), does, duration(slow.perStep(stage)), duration(v.Excess)))
	if !together {
		v.Sentences = append(v.Sentences, "The ranks don't wait for each other, or its steps would not be longer than theirs.")
	}
}

// judgeNode names the slow rank's node, if all its ranks are slow and no others.
func (v *Verdict) judgeNode(running []*Rank, slow *Rank, late func(*Rank) bool) {
	there := 0
	for _, r := range running {
		if (r.Node == slow.Node) != late(r) {
			return
		}
		if r.Node == slow.Node {
			there++
		}
	}
	if there > 1 && there < len(running) {
		v.Node = slow.Node
		v.Sentences = append(v.Sentences, fmt.Sprintf("All %d ranks on %s are slow, and no others: look at what they share, its disk, network or processors.", there, slow.Node))
	}
}

// median is that of the others, the lower one of two.
func median(all []*Rank, but *Rank, causes []journal.Cause) float64 {
	var others []float64
	for _, r := range all {
		if r != but {
			others = append(others, r.perStep(causes...))
		}
	}
	slices.Sort(others)
	return others[(len(others)-1)/2]
}

// words are causes in words.
var words = map[journal.Cause]string{
	journal.Producers: "producers", journal.Order: "a slow sample", journal.HostSlot: "a free host slot", journal.Leases: "slots that the program holds",
	journal.Copy: "the copy", journal.Transform: "the transform", journal.Device: "the device", journal.Body: "the loop",
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
