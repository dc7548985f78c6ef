package loader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// A message is one line, however much is wrong; the stacks come with %+v.
func TestStacksComeWithPlusV(t *testing.T) {
	broken := func(context.Context, int, *loader.Row) error { panic(fmt.Errorf("broken: %w", loader.ErrClosed)) }
	twice := func(context.Context, int, *loader.Row) error {
		return errors.Join(&loader.PanicError{Value: 1, Stack: []byte("the first's")}, &loader.PanicError{Value: 2, Stack: []byte("the second's")})
	}
	hang := func(context.Context, int, *loader.Row) error { time.Sleep(time.Hour); return nil }
	for name, c := range map[string]struct {
		read   func(context.Context, int, *loader.Row) error
		stacks []string
	}{
		"panic":       {broken, []string{"loader_test.TestStacksComeWithPlusV.func1"}},
		"two of them": {twice, []string{"the first's", "the second's"}},
		"stall":       {hang, []string{"time.Sleep", "loader_test.TestStacksComeWithPlusV.func3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newNumbers(t, numbers{n: 4, before: c.read}, 2, loader.Options{StallTimeout: time.Minute, GracePeriod: time.Second, Workers: 1})
				run := l.Start(t.Context(), loader.Cursor{}, heap(t, l, 1))
				_, err := run.Next(t.Context())
				errs := []error{err}
				if stuck := new(loader.StuckError); errors.As(run.Close(), &stuck) { // errors.Join knows no %+v
					errs = append(errs, stuck)
				}
				for _, err := range errs {
					if name != "two of them" { // the user's own newline
						require.NotContains(t, err.Error(), "\n")
					}
					require.Equal(t, err.Error(), fmt.Sprintf("%v", err))
					require.Equal(t, err.Error(), fmt.Sprintf("%s", err))
					require.Equal(t, fmt.Sprintf("%q", err.Error()), fmt.Sprintf("%q", err))
					long := fmt.Sprintf("%+v", err)
					require.True(t, strings.HasPrefix(long, err.Error()+"\n"), long)
					for _, stack := range c.stacks {
						require.Contains(t, long, stack)
					}
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// What stands in a log for each sample that was replaced or left out is a line, whatever verb
// prints it.
func TestWhatWasReplacedOrLeftOutIsALine(t *testing.T) {
	var cause error = &loader.PanicError{Value: "broken", Stack: []byte("a stack of many lines")}
	for want, value := range map[string]any{
		"row 1: sample 4 in place of sample 3 (position 7), attempt 2: panic: broken": loader.Substitution{
			Row: 1, Position: 7, Sample: 3, Substitute: 4, Attempts: 2, Err: cause},
		"shard 1, pass 0, before position 9, a.txt, record 4 at offset 12: panic: broken": loader.Skipped{
			Shard: 1, Position: 9, Origin: loader.Origin{File: "a.txt", Offset: 12, Record: 4}, Err: cause},
		"shard 1, pass 2, before position 9: panic: broken": loader.Skipped{Shard: 1, Pass: 2, Position: 9, Err: cause},
	} {
		for _, verb := range []string{"%v", "%s", "%+v"} {
			require.Equal(t, want, fmt.Sprintf(verb, value))
		}
		require.Equal(t, "["+want+"]", fmt.Sprintf("%+v", []any{value}))
	}
}
