package fuzz

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// hang is how long a program may take by the wall's clock: under virtual time none
// takes a second, so that one which does waits for a lock.
const hang = 15 * time.Second

type program interface {
	fmt.Stringer
	real() bool // runs by the wall's clock
}

// drive generates programs and runs them: as many as rapid's flags say, or for as
// long as LEAT_SOAK does, the same ones for the same LEAT_SOAK_SEED.
func drive[P program](t *testing.T, generate func(*rapid.T) P, run func(P) error) {
	last := filepath.Join(os.TempDir(), "leat-fuzz-"+t.Name()+"-"+strconv.Itoa(os.Getpid()))
	defer os.Remove(last) // a crash leaves it
	programs, failed := 0, false
	check := func() {
		rapid.Check(t, func(rt *rapid.T) {
			p := rapid.Custom(generate).Draw(rt, "program")
			programs++
			text := p.String()
			require.NoError(t, os.WriteFile(last, []byte(text), 0o600))
			around := bubble
			if p.real() {
				around = joined
			}
			if err := around(t, text, func() error { return run(p) }); err != nil {
				if !failed { // rapid tells only of the shortest, and not of that where it comes and goes
					failed = true
					t.Logf("%v\n%s", err, text)
				}
				rt.Fatal(err)
			}
		})
	}
	limit, first := time.Duration(0), uint64(0)
	var err error
	if text := os.Getenv("LEAT_SOAK"); text != "" {
		limit, err = time.ParseDuration(text)
		require.NoError(t, err, "LEAT_SOAK")
	}
	if text := os.Getenv("LEAT_SOAK_SEED"); text != "" {
		first, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "LEAT_SOAK_SEED")
	}
	require.NoError(t, flag.Set("rapid.nofailfile", "true")) // the seed is enough
	given := flag.Lookup("rapid.seed").Value.String()
	defer func() { require.NoError(t, flag.Set("rapid.seed", given)) }()
	again := given != "0"
	start := time.Now()
	for round := uint64(1); ; round++ {
		if first > 0 && !again {
			require.NoError(t, flag.Set("rapid.seed", fmt.Sprint(first<<32+round)))
		}
		check()
		if again || time.Since(start) >= limit {
			break
		}
	}
	t.Logf("%d programs in %v", programs, time.Since(start).Round(time.Millisecond))
}

// bubble runs a program under virtual time, and waits until no goroutine of it is
// left.
func bubble(t *testing.T, text string, run func() error) (err error) {
	defer watchdog(text).Stop()
	defer func() {
		if v := recover(); v != nil { // a deadlock
			if done := err; done != nil {
				err = fmt.Errorf("%w\nand then: %v", done, v)
				return
			}
			err = fmt.Errorf("%v\n%s", v, bubbled(stacks()))
		}
	}()
	synctest.Test(t, func(*testing.T) { err = caught(run) })
	return err
}

// joined runs a program by the wall's clock, and waits until no goroutine of it is
// left.
func joined(_ *testing.T, text string, run func() error) error {
	defer watchdog(text).Stop()
	before := runtime.NumGoroutine()
	err := caught(run)
	for start := time.Now(); runtime.NumGoroutine() > before && err == nil; time.Sleep(time.Millisecond) {
		if time.Since(start) > settle {
			err = fmt.Errorf("goroutines are left behind:\n%s", stacks())
		}
	}
	return err
}

// caught is the error of a program, or its panic.
func caught(run func() error) (err error) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, stack())
		} else if !returned {
			err = fmt.Errorf("the consumer's goroutine was ended")
		}
	}()
	err = run()
	returned = true
	return err
}

// watchdog ends the process if a program does not.
func watchdog(text string) *time.Timer {
	return time.AfterFunc(hang, func() {
		fmt.Fprintf(os.Stderr, "a program hangs:\n%s\n%s\n", text, stacks())
		os.Exit(2)
	})
}

func stack() []byte {
	buf := make([]byte, 64<<10)
	return buf[:runtime.Stack(buf, false)]
}

func stacks() []byte {
	buf := make([]byte, 16<<20)
	return buf[:runtime.Stack(buf, true)]
}

// bubbled are the stacks of goroutines in a bubble.
func bubbled(all []byte) string {
	var in []string
	for _, one := range strings.Split(string(all), "\n\n") {
		if head, _, _ := strings.Cut(one, "\n"); strings.Contains(head, "synctest bubble") {
			in = append(in, one)
		}
	}
	return strings.Join(in, "\n\n")
}

// lines is a program's text: what it is about, and its steps.
func lines[S fmt.Stringer](head []string, steps []S) string {
	for i, s := range steps {
		head = append(head, fmt.Sprintf("%3d. %v", i+1, s))
	}
	return strings.Join(head, "\n")
}
