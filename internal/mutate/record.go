package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A test is one top-level test, example or fuzz test's seeds.
type test struct {
	pkg    *TestPackage
	name   string
	time   time.Duration
	passes map[int]bool // the mutants whose places it passes
	broken string       // why it can't judge: it fails with every mutant off
	noRace bool         // the same under the race detector
}

// record runs every test alone, with every mutant off.
func (r *runner) record(k *Kit, jobs int, slow time.Duration) ([]*test, error) {
	var tests []*test
	for i := range k.Packages {
		p := &k.Packages[i]
		how, out, err := r.list(p)
		if err != nil {
			return nil, err
		}
		if how != passed {
			return nil, fmt.Errorf("%s does not list its tests:\n%s", p.Binary, out)
		}
		for _, name := range strings.Fields(string(out)) {
			if regexp.MustCompile("^(Test|Example|Fuzz)").MatchString(name) {
				tests = append(tests, &test{pkg: p, name: name})
			}
		}
	}
	return tests, each(jobs, tests, func(t *test) error { return r.recordOne(t, slow) })
}

func (r *runner) list(p *TestPackage) (outcome, []byte, error) {
	return r.startFlags(p.Package, p.Binary, time.Minute, []string{"-test.list=."})
}

func (r *runner) recordOne(t *test, slow time.Duration) error {
	f, err := os.CreateTemp("", "sites")
	if err != nil {
		return err
	}
	_ = f.Close()
	defer os.Remove(f.Name())
	start := time.Now()
	how, out, err := r.start(t.pkg, t.pkg.Binary, only(t), slow, "LEAT_MUTANT_SITES="+f.Name())
	if err != nil {
		return err
	}
	t.time = time.Since(start)
	if how == failed {
		// Noting the places takes time, which a test may not bear.
		if how, out, err = r.start(t.pkg, t.pkg.Binary, only(t), slow); err != nil {
			return err
		}
	}
	switch how {
	case failed, overgrew:
		t.broken = "fails with every mutant off:\n" + string(out)
	case timedOut:
		t.broken = fmt.Sprintf("takes longer than %v", slow)
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	t.passes = map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return fmt.Errorf("%s: noted place %q", t.name, line)
		}
		t.passes[n] = true
	}
	return nil
}

// only is the pattern of some tests.
func only(tests ...*test) string {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// each calls f for all of items, several at a time, and returns the first error.
func each[T any](jobs int, items []T, f func(T) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	todo := make(chan T)
	for range jobs {
		wg.Go(func() {
			for item := range todo {
				if err := f(item); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for _, item := range items {
		todo <- item
	}
	close(todo)
	wg.Wait()
	return first
}

// judgesOf is the tests that can catch m: those of its own package first, the quick
// ones first, and of other packages' as many as there is time for.
func (r *runner) judgesOf(m *Mutant, tests []*test) []*test {
	var l []*test
	for _, t := range tests {
		if t.broken == "" && t.passes[m.Number] {
			l = append(l, t)
		}
	}
	slices.SortStableFunc(l, func(a, b *test) int {
		foreign := func(t *test) int {
			if t.pkg.Package == m.Package {
				return 0
			}
			return 1
		}
		if d := foreign(a) - foreign(b); d != 0 {
			return d
		}
		return int(a.time - b.time)
	})
	var spent time.Duration
	for i, t := range l {
		if t.pkg.Package == m.Package {
			continue
		}
		if spent += t.time; spent > r.foreign {
			return l[:i]
		}
	}
	return l
}
