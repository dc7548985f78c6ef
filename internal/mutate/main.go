package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	err := command(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	kit, run, out, root, list string
	tests, files, tags, match string
	jobs                      int
	slow, foreign, most       time.Duration
	race, verbose             bool
}

func command(args []string, stdout io.Writer) error {
	var o options
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.StringVar(&o.kit, "build", "", "only build, into this `folder`")
	f.StringVar(&o.run, "run", "", "only run what -build wrote into this `folder`")
	f.StringVar(&o.out, "o", "", "write the report to this `file` as well")
	f.StringVar(&o.root, "C", ".", "the module's root `folder`, in which tests find their files")
	f.StringVar(&o.list, "survivors", "internal/mutate/survivors.txt", "the list of survivors, a `file`")
	f.StringVar(&o.tests, "tests", "", "comma-separated `packages` whose tests judge as well")
	f.StringVar(&o.files, "files", "", "mutate only these comma-separated `files`")
	f.StringVar(&o.tags, "tags", "", "build `tags`")
	f.StringVar(&o.match, "match", "", "run only mutants whose key matches this `pattern`")
	f.IntVar(&o.jobs, "j", runtime.NumCPU(), "`processes` at a time")
	f.DurationVar(&o.slow, "slow", 30*time.Second, "leave out tests that take longer than this `time`")
	f.DurationVar(&o.foreign, "foreign", 10*time.Second, "how much `time` of other packages' tests a mutant is worth")
	f.DurationVar(&o.most, "for", 0, "end after this `time`, also with mutants not tried")
	f.BoolVar(&o.race, "race", true, "run what concerns mutexes under the race detector as well")
	f.BoolVar(&o.verbose, "v", false, "print also which test caught each mutant")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.run != "" {
		return o.runKit(o.run, stdout)
	}
	if f.NArg() == 0 {
		return errors.New("name the packages to mutate")
	}
	kit := o.kit
	if kit == "" {
		dir, err := os.MkdirTemp("", "mutate")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		kit = dir
	}
	start := time.Now()
	if err := build(kit, &o, f.Args()); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "built in %v\n", time.Since(start).Round(time.Second))
	if o.kit != "" {
		return addSelf(kit)
	}
	return o.runKit(kit, stdout)
}

// runKit runs all mutants of a kit. Its error tells that some survived.
func (o *options) runKit(kit string, stdout io.Writer) error {
	k, err := open(kit)
	if err != nil {
		return err
	}
	list, err := survivors(o.list)
	if err != nil {
		return err
	}
	match, err := regexp.Compile(o.match)
	if err != nil {
		return err
	}
	var which []*Mutant
	for _, m := range k.Mutants {
		if match.MatchString(m.Key()) {
			which = append(which, m)
		}
	}
	start := time.Now()
	r := &runner{kit: kit, root: o.root, foreign: o.foreign, memory: 2 << 30, procs: max(2, runtime.NumCPU()/o.jobs)}
	if o.most > 0 {
		r.until = start.Add(o.most)
	}
	tests, err := r.record(k, o.jobs, o.slow)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d tests recorded in %v\n", len(tests), time.Since(start).Round(time.Second))
	verdicts, err := r.run(k, which, tests, o.jobs, stdout)
	if err != nil {
		return err
	}
	p := &report{verdicts: verdicts, skipped: k.Skipped, tests: tests, verbose: o.verbose, took: time.Since(start)}
	for _, v := range verdicts {
		v.listed = list[v.Key()]
	}
	if !k.Partial {
		p.stale = stale(list, k)
	}
	out := stdout
	if o.out != "" {
		f, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer f.Close()
		out = io.MultiWriter(stdout, f)
	}
	p.write(out)
	if n := p.unlisted(); n > 0 {
		return fmt.Errorf("%d mutants that no test catches are not in the list of survivors", n)
	}
	return nil
}

// stale is the keys of the list for whose package k has mutants, but not theirs.
func stale(list map[string]*entry, k *Kit) []string {
	keys, packages := map[string]bool{}, map[string]bool{}
	for _, m := range k.Mutants {
		keys[m.Key()] = true
		packages[m.Package] = true
	}
	var gone []string
	for _, key := range sortedKeys(list) {
		pkg, _, _ := strings.Cut(key, " ")
		if packages[pkg] && !keys[key] {
			gone = append(gone, key)
		}
	}
	return gone
}

func split(s string) []string {
	return slices.DeleteFunc(strings.Split(s, ","), func(s string) bool { return s == "" })
}
