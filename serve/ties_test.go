package serve_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/serve"
)

// A request whose answer would come at its very deadline is left out, in favour of one whose
// answer comes in time.
func TestAnAnswerAtTheDeadlineIsTooLate(t *testing.T) {
	for _, over := range []time.Duration{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			q, err := serve.NewHost(1, squares(nil), onHost(10*ms), serve.Options{InFlight: 1})
			require.NoError(t, err)
			_, err = q.Do(t.Context(), ask{}) // from which it knows how long a batch takes
			require.NoError(t, err)
			began := time.Now()
			var asking sync.WaitGroup
			do := func(patience, want time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				asking.Go(func() {
					defer cancel()
					_, err := q.Do(ctx, ask{})
					require.Equal(t, want, time.Since(began))
					require.Equal(t, want == patience, err != nil, "%v", err)
				})
				synctest.Wait()
			}
			do(time.Second, 10*ms)
			if over == 0 { // it could begin at 10 ms and end at 20
				do(20*ms, 20*ms)
				do(time.Second, 20*ms)
			} else {
				do(20*ms+over, 20*ms)
				do(time.Second, 30*ms)
			}
			asking.Wait()
			require.NoError(t, q.Close())
		})
	}
}

// Whoever waits for a place longest is the next to have one, of whatever tenant.
func TestPlacesAreGivenInTheOrderOfComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := serve.NewHost(1, squares(nil), onHost(ms), serve.Options{InFlight: 1, Limit: 1, Block: true})
		require.NoError(t, err)
		var asking sync.WaitGroup
		began := time.Now()
		for i := range 12 {
			asking.Go(func() {
				_, err := q.DoAs(t.Context(), serve.Caller{Tenant: fmt.Sprint(i % 3), Priority: int8(i)}, ask{})
				require.NoError(t, err)
				require.Equal(t, time.Duration(i+1)*ms, time.Since(began))
			})
			synctest.Wait()
		}
		asking.Wait()
		require.NoError(t, q.Close())
	})
}

// Of requests that come at one instant with the same priority the first goes first.
func TestRequestsOfOneInstantGoInTheOrderOfComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := serve.NewHost(1, squares(nil), onHost(ms), serve.Options{InFlight: 1})
		require.NoError(t, err)
		var asking sync.WaitGroup
		began := time.Now()
		for i := range 12 {
			asking.Go(func() {
				_, err := q.Do(t.Context(), ask{})
				require.NoError(t, err)
				require.Equal(t, time.Duration(i+1)*ms, time.Since(began))
			})
			synctest.Wait()
		}
		asking.Wait()
		require.NoError(t, q.Close())
	})
}

// silent is a context that has a deadline and says nothing when it comes.
type silent struct {
	context.Context
	at time.Time
}

func (s silent) Deadline() (time.Time, bool) { return s.at, true }

// A request whose deadline a batch sees before its context ends has the context's own cause.
func TestADeadlineThatIsToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := serve.NewHost(1, squares(nil), onHost(10*ms), serve.Options{InFlight: 1})
		require.NoError(t, err)
		var asking sync.WaitGroup
		asking.Go(func() {
			ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1<<50, 0)) // beyond all that a Duration can say
			defer cancel()
			_, err := q.Do(ctx, ask{})
			require.NoError(t, err)
		})
		synctest.Wait()
		cause := errors.New("the user has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(12*ms, func() { cancel(cause) })
		_, err = q.Do(silent{ctx, time.Now().Add(5 * ms)}, ask{})
		var failed *serve.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, serve.StageLine, failed.Stage)
		require.Equal(t, 10*ms, failed.Waited)
		require.ErrorIs(t, err, cause)
		asking.Wait()
		require.EqualValues(t, 1, q.Stats().Rows)
		require.NoError(t, q.Close())
	})
}

// A deadline holds for a batch also if the context does not end at it.
func TestADeadlineThatNobodyTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := serve.NewHost(1, squares(nil), onHost(10*ms), serve.Options{InFlight: 1})
		require.NoError(t, err)
		var asking sync.WaitGroup
		asking.Go(func() {
			_, err := q.Do(t.Context(), ask{})
			require.NoError(t, err)
		})
		synctest.Wait()
		_, err = q.Do(silent{t.Context(), time.Now().Add(5 * ms)}, ask{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		asking.Wait()
		require.EqualValues(t, 1, q.Stats().Rows)
		require.NoError(t, q.Close())
	})
}
