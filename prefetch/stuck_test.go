package prefetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// graceful is for batches of two.
var graceful = loader.Options{Workers: 2, GracePeriod: time.Second}

// stuckTransform is passOn that does not return from batch 4 until go is closed.
func stuckTransform(data canary, goOn <-chan struct{}) *prefetch.Transform {
	pass := passOn(cpuSpin, 0, data)
	return &prefetch.Transform{Out: pass.Out, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
		if in.Position().Batch == 4 {
			<-goOn
		}
		return pass.Apply(s, out, in)
	}}
}

func TestATransformThatDoesNotReturnIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, goOn := canary{n: 40, width: 8}, make(chan struct{})
		r := newRig(t, data, adversarial(time.Millisecond), 2, graceful, prefetch.Options{Transform: stuckTransform(data, goOn)})
		n := 0
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		for _, err := range r.pf.Batches(ctx) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				break
			}
			if n++; n == 2 {
				synctest.Wait() // the uploader is in batch 4 by now
				start = time.Now()
				cancel()
			}
		}
		cancel()
		require.Equal(t, time.Second, time.Since(start))
		state := r.pf.State()
		var stuck *loader.StuckError
		for _, err := range r.pf.Batches(t.Context()) {
			require.ErrorAs(t, err, &stuck)
			require.Equal(t, 4, stuck.Batch)
			require.ErrorContains(t, err, "Transform.Apply")
		}
		require.ErrorAs(t, r.pf.Seek(0, 0), &stuck)
		require.Equal(t, state, r.pf.State(), "a Seek that failed changes nothing")
		require.ErrorAs(t, r.pf.Start(t.Context()), &stuck, "as long as it lasts")
		close(goOn)
		synctest.Wait()
		uploads := r.pf.Stats().Uploads
		require.NoError(t, r.pf.Start(t.Context()))
		synctest.Wait()
		require.Greater(t, r.pf.Stats().Uploads, uploads)
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err, "once it has returned all goes on")
			require.Equal(t, n, b.Position().Batch)
			n++
		}
		require.Equal(t, 20, n)
		r.close()
	})
}

func TestCloseDoesNotWaitForATransformThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, goOn := canary{n: 40, width: 8}, make(chan struct{})
		r := newRig(t, data, adversarial(time.Millisecond), 2, graceful, prefetch.Options{Transform: stuckTransform(data, goOn)})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		for range 2 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			b.Release()
		}
		synctest.Wait()
		start := time.Now()
		var stuck *loader.StuckError
		require.ErrorAs(t, r.pf.Close(), &stuck)
		require.Equal(t, time.Second, time.Since(start))
		require.NotZero(t, r.dev.Usage().DeviceBytes, "what it may use stays")
		_, err = r.pf.BeforeFree(func(context.Context) error { return nil })
		require.ErrorIs(t, err, prefetch.ErrClosed)
		close(goOn)
		require.NoError(t, r.dev.Synchronize(t.Context()))
		time.Sleep(time.Second)
		r.nothingLeft()
	})
}

func TestAStepThatDoesNotReturnIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, goOn := canary{n: 40, width: 8}, make(chan struct{})
		r := newRig(t, data, cpu.Options{}, 2, graceful, prefetch.Options{})
		echo := r.echo(always(0))
		step := func(b prefetch.Batch, out prefetch.Fields) error {
			if b.Position().Batch == 3 {
				<-goOn
			}
			return echo(b, out)
		}
		start := time.Now()
		for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, step) {
			require.NoError(t, err)
			synctest.Wait() // the step is in batch 3 by now
			start = time.Now()
			break
		}
		require.Equal(t, time.Second, time.Since(start))
		_, err := r.pf.Open(t.Context())
		require.ErrorIs(t, err, prefetch.ErrBusy)
		var stuck *loader.StuckError
		err = r.pf.Close()
		require.ErrorAs(t, err, &stuck)
		require.Equal(t, "the step", stuck.Stage)
		require.Equal(t, 3, stuck.Batch)
		close(goOn)
		synctest.Wait()
		require.NoError(t, r.dev.Synchronize(t.Context()))
		synctest.Wait()
		r.nothingLeft()
	})
}
