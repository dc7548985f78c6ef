package prefetch_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A run that Close could not join is its reaper's alone: a reader that is closed, or has
// only begun, meanwhile neither waits for it nor ends it a second time.
func TestARunThatCloseCouldNotJoinIsEndedOnce(t *testing.T) {
	open := func(t *testing.T, r *rig) *prefetch.Reader {
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		for range 2 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			b.Release()
		}
		synctest.Wait() // the uploader is in batch 4, and does not return
		return rd
	}
	var stuck *loader.StuckError
	// behind has call wait behind a Quiesce for its turn, for which Close comes too.
	behind := func(call func(*rig) error) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) {
			require.NoError(t, open(t, r).Close())
			called := make(chan error)
			go func() {
				time.Sleep(100 * time.Millisecond)
				called <- call(r)
			}()
			require.ErrorAs(t, r.pf.Quiesce(t.Context()), &stuck)
			closed, err := r.pf.Close(), <-called
			if errors.As(err, &stuck) {
				require.NoError(t, closed, "it was second, and Apply has returned since")
				return
			}
			if err != nil { // else it was before Close
				require.ErrorIs(t, err, prefetch.ErrClosed)
			}
			require.ErrorAs(t, closed, &stuck)
		}
	}
	const returns, later = 1500 * time.Millisecond, 2500 * time.Millisecond // of Apply
	for name, c := range map[string]struct {
		returns time.Duration
		run     func(*testing.T, *rig)
	}{
		"a range": {returns, func(t *testing.T, r *rig) {
			n := 0
			for _, err := range r.pf.Batches(t.Context()) {
				if err != nil {
					require.ErrorIs(t, err, prefetch.ErrClosed)
					break
				}
				if n++; n == 2 {
					synctest.Wait()
					require.ErrorAs(t, r.pf.Close(), &stuck)
				}
			}
		}},
		"a Reader": {returns, func(t *testing.T, r *rig) {
			rd := open(t, r)
			require.ErrorAs(t, r.pf.Close(), &stuck)
			_, err := rd.Next(t.Context())
			require.ErrorIs(t, err, prefetch.ErrClosed)
			start := time.Now()
			require.NoError(t, rd.Close())
			require.Zero(t, time.Since(start))
		}},
		"a Map": {returns, func(t *testing.T, r *rig) {
			n := 0
			for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(0))) {
				if err != nil {
					require.ErrorIs(t, err, prefetch.ErrClosed)
					break
				}
				if n++; n == 2 {
					synctest.Wait()
					require.ErrorAs(t, r.pf.Close(), &stuck)
				}
			}
		}},
		"Open": {later, behind(func(r *rig) error {
			_, err := r.pf.Open(t.Context())
			return err
		})},
		"Seek":  {later, behind(func(r *rig) error { return r.pf.Seek(1, 0) })},
		"Start": {later, behind(func(r *rig) error { return r.pf.Start(t.Context()) })},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data, goOn := canary{n: 40, width: 8}, make(chan struct{})
				r := newRig(t, data, adversarial(time.Millisecond), 2, graceful, prefetch.Options{Depth: 4, Transform: stuckTransform(data, goOn)})
				time.AfterFunc(c.returns, func() { close(goOn) })
				c.run(t, r)
				time.Sleep(3 * time.Second)
				require.NoError(t, r.dev.Synchronize(t.Context()))
				synctest.Wait()
				r.nothingLeft()
			})
		})
	}
}
