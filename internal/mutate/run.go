package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// fate is what became of a mutant.
type fate int

const (
	survived fate = iota
	caught
	hung       // caught by time
	overgrown  // caught by memory
	notReached // no test passes its place
	notTried   // there was no time for it
)

// A verdict is a mutant's fate and the test that decided it.
type verdict struct {
	*Mutant
	fate   fate
	by     string
	judges int // tests that pass its place
	listed *entry
}

// run tries the mutants of k and reports on progress.
func (r *runner) run(k *Kit, which []*Mutant, tests []*test, jobs int, progress io.Writer) ([]*verdict, error) {
	if err := r.checkRace(which, tests, jobs); err != nil {
		return nil, err
	}
	verdicts := make([]*verdict, len(which))
	for i, m := range which {
		verdicts[i] = &verdict{Mutant: m}
	}
	var mu sync.Mutex
	done := 0
	start := time.Now()
	err := each(jobs, verdicts, func(v *verdict) error {
		if err := r.try(v, r.judgesOf(v.Mutant, tests)); err != nil {
			return fmt.Errorf("mutant %d: %w", v.Number, err)
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		if done%100 == 0 || done == len(which) {
			fmt.Fprintf(progress, "%d of %d mutants in %v\n", done, len(which), time.Since(start).Round(time.Second))
		}
		return nil
	})
	return verdicts, err
}

// try runs one mutant against its judges until one catches it.
func (r *runner) try(v *verdict, judges []*test) error {
	v.judges = len(judges)
	if r.late() {
		v.fate = notTried
		return nil
	}
	if len(judges) == 0 {
		v.fate = notReached
		return nil
	}
	if err := r.against(v, judges, false); err != nil || v.fate != survived || !v.Race {
		return err
	}
	return r.against(v, judges, true)
}

func (r *runner) against(v *verdict, judges []*test, race bool) error {
	binary := func(t *test) string {
		if race {
			return t.pkg.Race
		}
		return t.pkg.Binary
	}
	able := judges[:0:0]
	for _, t := range judges {
		if binary(t) != "" && !(race && t.noRace) {
			able = append(able, t)
		}
	}
	for _, g := range groups(able) {
		// A test may wait in real time, and the machine may be busy with others; the race
		// detector makes all ten times slower.
		limit := 3*time.Second + 8*total(g)
		if race {
			limit = 10*time.Second + 40*raceRuns*total(g)
		}
		how, out, err := r.start(g[0].pkg, binary(g[0]), only(g...), limit, "LEAT_MUTANT="+strconv.Itoa(v.Number))
		if err != nil {
			return err
		}
		switch how {
		case passed:
			continue
		case failed:
			v.fate = caught
		case timedOut:
			v.fate = hung
			if r.late() {
				v.fate = notTried
			}
		case overgrew:
			v.fate = overgrown
		}
		v.by = culprit(out, g)
		return nil
	}
	return nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// culprit is the test that failed, as far as the output tells.
func culprit(out []byte, g []*test) string {
	if m := failure.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	if len(g) == 1 {
		return g[0].name
	}
	return fmt.Sprintf("one of %d tests", len(g))
}

// groups cuts tests, the quickest first, into those that share a process: few and
// quick ones at first, as most mutants fall to any test.
func groups(tests []*test) [][]*test {
	var all [][]*test
	most := 200 * time.Millisecond
	for len(tests) > 0 {
		n := 1
		for n < len(tests) && tests[n].pkg == tests[0].pkg && total(tests[:n+1]) < most {
			n++
		}
		all = append(all, tests[:n])
		tests = tests[n:]
		most = min(4*most, 5*time.Second)
	}
	return all
}

func total(tests []*test) time.Duration {
	var d time.Duration
	for _, t := range tests {
		d += t.time
	}
	return d
}

// checkRace finds the tests that fail under the race detector with every mutant off.
func (r *runner) checkRace(which []*Mutant, tests []*test, jobs int) error {
	var need []*test
	seen := map[*test]bool{}
	for _, m := range which {
		if !m.Race {
			continue
		}
		for _, t := range r.judgesOf(m, tests) {
			if t.pkg.Race != "" && !seen[t] {
				seen[t] = true
				need = append(need, t)
			}
		}
	}
	return each(jobs, need, func(t *test) error {
		how, _, err := r.start(t.pkg, t.pkg.Race, only(t), 10*time.Second+20*raceRuns*t.time)
		t.noRace = how != passed
		return err
	})
}
