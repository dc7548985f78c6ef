package compose_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// passing is an error that says whether it passes.
type passing bool

func (p passing) Error() string   { return fmt.Sprintf("passes: %v", bool(p)) }
func (p passing) Temporary() bool { return bool(p) }

func TestRetry(t *testing.T) {
	final := errors.New("for good")
	for name, c := range map[string]struct {
		options  compose.RetryOptions
		failures []error
		took     time.Duration
		attempts int // stated in a *RetryError, 0 for success or another error
		err      error
	}{
		"no failure":       {},
		"twice":            {failures: []error{passing(true), fmt.Errorf("wrapped: %w", passing(true))}, took: 300 * time.Millisecond},
		"it does not pass": {failures: []error{passing(false)}, err: passing(false)},
		"it says nothing":  {failures: []error{final}, err: final},
		"then for good":    {failures: []error{passing(true), final}, took: 100 * time.Millisecond, err: final},
		"too often": {failures: []error{passing(true), passing(true), passing(true), passing(true), passing(true)},
			took: 1500 * time.Millisecond, attempts: 5, err: passing(true)},
		"once": {options: compose.RetryOptions{Attempts: 1}, failures: []error{passing(true)}, err: passing(true)},
		"the longest wait": {options: compose.RetryOptions{Attempts: 4, Wait: time.Second, MaxWait: 1500 * time.Millisecond},
			failures: []error{passing(true), passing(true), passing(true)}, took: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads := 0
				ds := must(compose.Retry(loader.FromFunc(1, xField, func(_ context.Context, _ int, row *loader.Row) error {
					reads++
					number := row.Rand().Int64()
					if reads <= len(c.failures) {
						return errors.Join(loader.Write(row, "x", int64(-1)), c.failures[reads-1])
					}
					return loader.Write(row, "x", number)
				}), c.options))
				s, err := loader.NewScratch(xField)
				require.NoError(t, err)
				row := s.Begin(new(loader.Row))
				began := time.Now()
				err = ds.Read(t.Context(), 0, row)
				require.Equal(t, c.took, time.Since(began))
				if c.err == nil {
					require.NoError(t, err)
					require.NoError(t, s.Written())
					inner, _ := loader.NewScratch(xField)
					require.Equal(t, inner.Begin(row).Rand().Int64(), loader.Value[int64](row, "x")[0],
						"the random numbers are those of a first attempt")
					return
				}
				require.ErrorIs(t, err, c.err)
				require.ErrorAs(t, s.Written(), new(*loader.UnwrittenError), "nothing of a failed attempt is left")
				var often *compose.RetryError
				require.Equal(t, c.attempts > 0, errors.As(err, &often))
				if often != nil {
					require.Equal(t, c.attempts, often.Attempts)
				}
			})
		})
	}
}

// A time limit calls itself temporary: that of the read's own is, and the caller's is not.
func TestOnlyATimeLimitOfTheReadsOwnIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		caller, own time.Duration
		attempts    int
	}{
		"its own":      {caller: time.Hour, own: time.Second, attempts: 5},
		"the caller's": {caller: time.Second, own: time.Hour, attempts: 1},
		"both at once": {caller: time.Second, own: time.Second, attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				ds := must(compose.Retry(loader.FromFunc(1, xField, func(ctx context.Context, _ int, _ *loader.Row) error {
					attempts++
					ctx, cancel := context.WithTimeout(ctx, c.own)
					defer cancel()
					<-ctx.Done()
					return ctx.Err()
				}), compose.RetryOptions{}))
				s, err := loader.NewScratch(xField)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), c.caller)
				defer cancel()
				require.ErrorIs(t, ds.Read(ctx, 0, s.Begin(new(loader.Row))), context.DeadlineExceeded)
				require.Equal(t, c.attempts, attempts)
			})
		})
	}
}

func TestAWaitForTheNextAttemptEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ds := must(compose.Retry(loader.FromFunc(4, xField, func(context.Context, int, *loader.Row) error { return passing(true) }),
			compose.RetryOptions{Wait: time.Hour, MaxWait: time.Hour}))
		ld, err := loader.New(ds, 1, loader.Options{Workers: 2})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 2)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		began := time.Now()
		time.Sleep(time.Minute)
		require.NoError(t, run.Close())
		require.Equal(t, time.Minute, time.Since(began))
	})
}
