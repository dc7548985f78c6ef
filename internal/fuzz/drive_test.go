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
const hang = time.Minute

// drive generates programs and runs them: as many as rapid's flags say, or for as
// long as LEAT_SOAK does.
func drive[P fmt.Stringer](t *testing.T, generate func(*rapid.T) P, run func(P) error) {
	last := filepath.Join(os.TempDir(), "leat-fuzz-"+t.Name()+"-"+strconv.Itoa(os.Getpid()))
	defer os.Remove(last) // a crash leaves it
	programs, failed := 0, false
	check := func() {
		rapid.Check(t, func(rt *rapid.T) {
			p := rapid.Custom(generate).Draw(rt, "program")
			programs++
			text := p.String()
			require.NoError(t, os.WriteFile(last, []byte(text), 0o600))
			if err := bubble(t, text, func() error { return run(p) }); err != nil {
				if !failed { // rapid tells only of the shortest, and not of that where it comes and goes
					failed = true
					t.Logf("%v\n%s", err, text)
				}
				rt.Fatal(err)
			}
		})
	}
	limit := time.Duration(0)
	if text := os.Getenv("LEAT_SOAK"); text != "" {
		var err error
		limit, err = time.ParseDuration(text)
		require.NoError(t, err, "LEAT_SOAK")
	}
	seed := flag.Lookup("rapid.seed")
	require.NoError(t, flag.Set("rapid.nofailfile", "true")) // the seed is enough
	start := time.Now()
	check()
	for limit > 0 && time.Since(start) < limit && seed.Value.String() == "0" {
		check()
	}
	t.Logf("%d programs in %v", programs, time.Since(start).Round(time.Millisecond))
}

// bubble runs a program under virtual time, and waits until no goroutine of it is
// left.
func bubble(t *testing.T, text string, run func() error) (err error) {
	watchdog := time.AfterFunc(hang, func() {
		fmt.Fprintf(os.Stderr, "a program hangs:\n%s\n%s\n", text, stacks())
		os.Exit(2)
	})
	defer watchdog.Stop()
	defer func() {
		if v := recover(); v != nil { // a deadlock
			if done := err; done != nil {
				err = fmt.Errorf("%w\nand then: %v", done, v)
				return
			}
			err = fmt.Errorf("%v\n%s", v, bubbled(stacks()))
		}
	}()
	synctest.Test(t, func(*testing.T) {
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
	})
	return err
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
