package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// outcome is how a run of a test binary ended.
type outcome int

const (
	passed   outcome = iota
	failed           // a test failed, or the process died
	timedOut         // it took too long
	overgrew         // it took too much memory
)

// raceRuns is how often a test is run under the race detector, which sees a race only
// where it comes close to happening.
const raceRuns = 4

// A runner starts test binaries.
type runner struct {
	kit, root string        // folders
	procs     int           // GOMAXPROCS of each process
	memory    int64         // that a process may take, in bytes
	until     time.Time     // the run ends then; zero without a limit
	foreign   time.Duration // how much of other packages' tests a mutant is worth
}

// start runs the named tests of p's binary, and returns how that ended and what it said.
func (r *runner) start(p *TestPackage, binary, tests string, limit time.Duration, env ...string) (outcome, []byte, error) {
	flags := append([]string{"-test.run=" + tests, "-test.timeout=0", "-test.failfast"}, p.Flags...)
	if binary == p.Race {
		flags = append(flags, fmt.Sprint("-test.count=", raceRuns))
	}
	return r.startFlags(p.Package, binary, limit, flags, env...)
}

func (r *runner) startFlags(pkg, binary string, limit time.Duration, flags []string, env ...string) (outcome, []byte, error) {
	name, err := filepath.Abs(filepath.Join(r.kit, binary))
	if err != nil {
		return failed, nil, err
	}
	c := exec.Command(name, flags...)
	c.Dir = filepath.Join(r.root, filepath.FromSlash(pkg))
	c.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(r.procs), "GOTRACEBACK=single")
	c.Env = append(c.Env, env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second
	ownGroup(c)
	if err := c.Start(); err != nil {
		return failed, nil, err
	}
	ended := make(chan struct{})
	watched := make(chan outcome, 1)
	go func() { watched <- r.watch(c, limit, ended) }()
	err = c.Wait()
	close(ended)
	if how := <-watched; how != passed {
		return how, out.Bytes(), nil
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && c.ProcessState.Success() {
		return passed, out.Bytes(), nil
	}
	return failed, out.Bytes(), nil
}

// watch ends a process that takes too much time or memory, and tells whether it did: a
// mutant may make a loop endless that appends. Time in which the process wants to run
// and others do instead doesn't count, as far as the system tells: on a busy machine
// an innocent test would else be taken for one that hangs.
func (r *runner) watch(c *exec.Cmd, limit time.Duration, ended <-chan struct{}) outcome {
	const (
		tick   = 100 * time.Millisecond
		excuse = 4 // there is an end to it
	)
	t := time.NewTicker(tick)
	defer t.Stop()
	start := time.Now()
	last := start
	var spent, ran time.Duration
	for {
		select {
		case <-ended:
			return passed
		case now := <-t.C:
			memory, cpu, known := usage(c.Process.Pid)
			passedBy := now.Sub(last)
			if known && cpu > ran {
				passedBy = min(passedBy, cpu-ran)
			}
			spent, ran, last = spent+passedBy, cpu, now
			switch {
			case memory > r.memory:
				_ = kill(c)
				return overgrew
			case r.late() || spent > limit || now.Sub(start) > excuse*limit:
				_ = kill(c)
				return timedOut
			}
		}
	}
}

// late reports whether the time for mutants is over.
func (r *runner) late() bool { return !r.until.IsZero() && time.Now().After(r.until) }

// usage is a process's memory in bytes and the processor time that it has used, where
// the system tells.
func usage(pid int) (memory int64, cpu time.Duration, known bool) {
	if runtime.GOOS != "linux" {
		return 0, 0, false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The command's name is in parentheses and may hold anything. Behind it come, from
	// the third on, the numbers of proc(5): 14 and 15 are time, 24 is memory in pages.
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 22 {
		return 0, 0, false
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(f[field-3], 10, 64)
		return n
	}
	const hertz = 100 // of the times, on every architecture that Go has
	return number(24) * int64(os.Getpagesize()), time.Duration(number(14)+number(15)) * time.Second / hertz, true
}
