package prefetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Result that is kept is refused also when its memory holds another.
func TestAResultThatIsKeptIsNotTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
		var kept prefetch.Result
		for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields(), Slots: 1}, r.echo(always(0))) {
			require.NoError(t, err)
			if kept == (prefetch.Result{}) {
				kept = res
				continue
			}
			require.Panics(t, func() { kept.Len() })
		}
		require.Panics(t, func() { kept.Field("index") })
		r.close()
	})
}

// Results that come before their turn don't move the cursor, in any epoch.
func TestTheCursorNeverGoesBackInAMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		co := cpu.Options{Model: stages(time.Millisecond, time.Millisecond, 2)}
		r := newRig(t, canary{n: 40, width: 8}, co, 2, loader.Options{Workers: 2, Epochs: 2},
			prefetch.Options{Depth: 6, BatchesPerCopy: 1, Streams: prefetch.Streams{Compute: 2}})
		step := r.echo(func(at prefetch.Position) time.Duration {
			if at.Batch%5 == 2 {
				return 50 * time.Millisecond
			}
			return time.Millisecond
		})
		for epoch := range 2 {
			seen, behind, early := map[int]bool{}, 0, 0
			for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields(), AsFinished: true}, step) {
				require.NoError(t, err)
				require.NoError(t, r.verify(got(res)))
				if seen[res.Position().Batch] = true; res.Position().Batch > behind {
					early++
				}
				for seen[behind] {
					behind++
				}
				if behind < 20 {
					require.Equal(t, epoch, r.pf.State().Epoch)
					require.Equal(t, int64(2*behind), r.pf.State().Position)
				}
			}
			require.Len(t, seen, 20)
			require.Positive(t, early, "some came before their turn")
			require.Equal(t, epoch+1, r.pf.Epoch())
		}
		r.close()
	})
}

// The results' memory is kept for the next Map of the same Output, and is made anew behind
// one of another that could not be had.
func TestResultsAreKeptForTheNextMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain,
			prefetch.Options{Memory: prefetch.Memory{PinnedBytes: 1 << 20}})
		output := prefetch.Output{Fields: r.data.Fields()}
		whole := func() {
			t.Helper()
			n, err := 0, error(nil)
			for _, err = range r.pf.Map(t.Context(), output, r.echo(always(0))) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 10, n)
		}
		whole()
		made := r.dev.Usage()
		whole()
		require.Equal(t, made, r.dev.Usage(), "nothing is allocated")
		large := prefetch.Output{Fields: []loader.Field{{Name: "large", DType: dtype.Uint8, Shape: []int{1 << 20}}}}
		for _, err := range r.pf.Map(t.Context(), large, r.echo(always(0))) {
			require.ErrorAs(t, err, new(*prefetch.MemoryError))
		}
		whole()
		r.close()
	})
}

// A loop that waits for a result while a step does not return ends when its context does,
// or with Close.
func TestALoopOverAMapEndsAtOnce(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			want := context.DeadlineExceeded
			if closed {
				ctx, want = t.Context(), prefetch.ErrClosed
				time.AfterFunc(time.Second, func() { _ = r.pf.Close() })
			}
			start := time.Now()
			step := func(prefetch.Batch, prefetch.Fields) error {
				time.Sleep(1500 * time.Millisecond)
				return nil
			}
			n := 0
			for _, err := range r.pf.Map(ctx, prefetch.Output{Fields: r.data.Fields()}, step) {
				require.ErrorIs(t, err, want)
				require.Equal(t, time.Second, time.Since(start))
				n++
			}
			require.Equal(t, 1, n)
			time.Sleep(time.Minute)
			r.close()
		})
	}
}
