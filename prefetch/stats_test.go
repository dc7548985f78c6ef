package prefetch_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

func TestTheTableOfWhoWaited(t *testing.T) {
	s := prefetch.Stats{
		Device: "cpu:0", Batches: 128, Samples: 1024, Bytes: 1 << 20, Uploads: 64,
		WaitProducer: 300 * ms, WaitOrder: 100 * ms, WaitDevice: 50 * ms, WaitRelease: 50 * ms, Body: 1500 * ms,
		WaitSlot: 400 * ms, WaitHostSlot: 20 * ms, WaitCopy: 10 * ms, CopyTime: 80 * ms, TimedUploads: 64,
		Loader: loader.Stats{
			Busy: []time.Duration{900 * ms, 700 * ms}, Substituted: 3,
			Slowest: loader.Slowest{Epoch: 1, Position: 7, Sample: 70, Neighbours: 1, Took: 123456 * time.Microsecond},
		},
	}
	require.Equal(t, 500*ms, s.Wait())
	require.InDelta(t, 0.875, s.Overlap(), 1e-9)
	require.Equal(t, `128 batches, 1024 samples, 1048576 bytes, 512 samples a second
you worked on batches                                                1.5s   75.0%
you waited for producers to fill the next batch                     300ms   15.0%
you waited for a slow sample, with later batches filled             100ms    5.0%
you waited for the device to take a batch                            50ms    2.5%
you waited for a slot, and held all of them                          50ms    2.5%
compute waited for copies, which took 80ms                           10ms    0.5%
the uploader waited for a device slot, to be released by you        400ms   20.0%
producers waited for a host slot, with nothing else to do            20ms    1.0%
each of 2 workers read samples, on average                          800ms   40.0%
the slowest sample took (70, in epoch 1)                        123.456ms    6.2%
3 samples could not be read, others stand in for them
`, s.String())
}

// Without a device no line speaks of one.
func TestTheTableWithoutADevice(t *testing.T) {
	s := prefetch.Stats{Batches: 3, Samples: 3, Bytes: 12, WaitProducer: 300 * ms, Body: 100 * ms, WaitHostSlot: 20 * ms,
		Loader: loader.Stats{Busy: []time.Duration{250 * ms}}}
	const want = `3 batches, 3 samples, 12 bytes, 8 samples a second
you worked on batches                                               100ms   25.0%
you waited for producers to fill the next batch                     300ms   75.0%
you waited for a slow sample, with later batches filled                0s    0.0%
producers waited for a host slot, with nothing else to do            20ms    5.0%
each of 1 workers read samples, on average                          250ms   62.5%
`
	require.Equal(t, want, s.String())
	s.WaitDevice = 400 * ms
	require.Contains(t, s.String(), "you waited for the transform")
	require.NotContains(t, s.String(), "device")
	require.NotContains(t, prefetch.Stats{}.String(), "%", "before the first batch")
}

// One slot and one worker, and a loop that does nothing: all of its time is the producers'.
func TestOneHostSlotIsNoDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(slow{n: 40, read: same(5 * ms)}, 1, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
		require.NoError(t, err)
		for _, err := range pf.All(t.Context()) {
			require.NoError(t, err)
		}
		s := pf.Stats()
		require.Equal(t, 200*ms, s.WaitProducer)
		require.Equal(t, s.WaitProducer, s.Wait())
		require.Zero(t, s.Body)
		require.NotContains(t, s.String(), "device")
		require.NoError(t, pf.Close())
	})
}

// Nor is there one in real time, in which handing a batch over takes a moment.
func TestHandingOverIsNoDevice(t *testing.T) {
	ld, err := loader.New(slow{n: 200, read: same(0)}, 1, loader.Options{Workers: 2, Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
	require.NoError(t, err)
	for _, err := range pf.All(t.Context()) {
		require.NoError(t, err)
	}
	s := pf.Stats()
	require.Zero(t, s.WaitDevice)
	require.NotZero(t, s.WaitProducer)
	require.NoError(t, pf.Close())
}

// Without a device there is one all the same that Next can wait for: the one that the
// transform runs on.
func TestTheTransformOfAHostConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(slow{n: 4, read: same(ms)}, 1, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Depth: 4, Transform: &prefetch.Transform{
			Out: []loader.Field{{Name: "y", DType: dtype.Uint8}},
			Apply: func(s *device.Stream, out, _ prefetch.Fields) error {
				if err := s.Memset(out.Field("y").View, 1); err != nil {
					return err
				}
				return cpuSpin(s, 20*ms)
			},
		}})
		require.NoError(t, err)
		start := time.Now()
		for _, err := range pf.All(t.Context()) {
			require.NoError(t, err)
			time.Sleep(3 * ms)
		}
		require.Equal(t, 84*ms, time.Since(start))
		s := pf.Stats()
		require.Equal(t, ms, s.WaitProducer)
		require.Equal(t, (20+3*17)*ms, s.WaitDevice)
		require.Equal(t, 12*ms, s.Body)
		require.Equal(t, 84*ms, s.Wait()+s.Body)
		require.NoError(t, pf.Close())
	})
}

// A validation pipeline inside of a training step, and reading ahead before the first step:
// the one is the body's time, and the other is nobody's.
func TestWhatTheLoopDoesMeanwhileIsItsBody(t *testing.T) {
	type own struct{ wait, body time.Duration }
	train := func(t *testing.T, validate func()) (steps []own) {
		ld, err := loader.New(slow{n: 20, read: same(30 * ms)}, 1, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 4}})
		require.NoError(t, err)
		require.NoError(t, pf.Start(t.Context()))
		time.Sleep(time.Second)
		for _, err := range pf.All(t.Context()) {
			require.NoError(t, err)
			time.Sleep(10 * ms)
			s := pf.Stats()
			if steps = append(steps, own{s.Wait(), s.Body}); len(steps)%5 == 0 {
				validate()
			}
		}
		require.NoError(t, pf.Close())
		return steps
	}
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(slow{n: 3, read: same(40 * ms)}, 1, loader.Options{Workers: 1})
		require.NoError(t, err)
		validation, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		with := train(t, func() {
			n := 0
			for _, err := range validation.Pass(t.Context()) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 3, n)
		})
		without := train(t, func() { time.Sleep(120 * ms) })
		require.Equal(t, without, with)
		require.Zero(t, with[3].wait, "what was read before the loop")
		require.NotZero(t, with[19].wait)
		require.Equal(t, (19*10+3*120)*ms, with[19].body, "without the last step's, which goes on")
		require.Equal(t, 4*120*ms, validation.Stats().WaitProducer)
		require.NoError(t, validation.Close())
	})
}

// The body ends with the next call, and with Close. What a program does between two ranges, or
// when Next has returned no batch, is not in it.
func TestTheBodyIsFromADeliveryToTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(slow{n: 3, read: same(0)}, 1, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
		require.NoError(t, err)
		body := func() time.Duration { return pf.Stats().Body }
		for _, err := range pf.All(t.Context()) {
			require.NoError(t, err)
			time.Sleep(3 * ms)
			break
		}
		require.Equal(t, 3*ms, body(), "a body that ends by break")
		time.Sleep(50 * ms)
		r, err := pf.Open(t.Context())
		require.NoError(t, err)
		time.Sleep(50 * ms)
		b, err := r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3*ms, body())
		time.Sleep(ms)
		_, err = r.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrLeases)
		time.Sleep(ms)
		b.Release()
		b, err = r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5*ms, body(), "a LeaseError does not end it")
		b.Release()
		_, err = r.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrEpochEnd)
		time.Sleep(50 * ms)
		require.NoError(t, r.Close())
		require.Equal(t, 5*ms, body())
		require.NoError(t, pf.Close())
	})
}

// What the producers of all ranges did counts once, whenever it is asked for.
func TestTheLoadersFiguresAreOfAllRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := slow{n: 6, read: func(sample int) time.Duration { return time.Duration(1+sample%6) * ms }}
		ld, err := loader.New(data, 2, loader.Options{Workers: 2, Epochs: 2})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		var before prefetch.Stats
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			for _, err := range pf.All(ctx) {
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
					break
				}
				if n++; n == 2 {
					cancel() // the producers are stopped
				}
			}
			cancel()
			s := pf.Stats()
			require.Len(t, s.Loader.Busy, 2)
			for i, busy := range s.Loader.Busy {
				if before.Loader.Busy != nil {
					require.GreaterOrEqual(t, busy, before.Loader.Busy[i])
				}
			}
			require.GreaterOrEqual(t, s.Loader.Batches, s.Batches)
			before = s
		}
		require.EqualValues(t, 6, before.Batches)
		require.Equal(t, 6*ms, before.Loader.Slowest.Took)
		require.Equal(t, 5, before.Loader.Slowest.Sample)
		require.NoError(t, pf.Close())
		require.Equal(t, before.Loader, pf.Stats().Loader)
	})
}

// A batch of an iterator is opened with its first sample. Until then it lacks producers, and
// no slot.
func TestASlowIteratorIsTheProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		samples := func(context.Context, loader.Pass) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for i := range 5 {
					if time.Sleep(10 * ms); !yield(i, nil) {
						return
					}
				}
			}
		}
		data := slow{n: 5, read: same(0)}
		it := loader.FromSeqFunc(data.Fields(), samples, func(ctx context.Context, i int, row *loader.Row) error { return data.Read(ctx, i, row) })
		ld, err := loader.NewIterable(it, 1, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		for _, err := range pf.All(t.Context()) {
			require.NoError(t, err)
		}
		require.Equal(t, 50*ms, pf.Stats().WaitProducer)
		require.Equal(t, 50*ms, pf.Stats().Wait())
		require.NoError(t, pf.Close())
	})
}

// A wait that its context ended counts when the batch is delivered, also if that came between
// two calls.
func TestAWaitThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(slow{n: 1, read: same(30 * ms)}, 1, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		r, err := pf.Open(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		_, err = r.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, pf.Stats().Wait())
		time.Sleep(40 * ms)
		b, err := r.Next(t.Context())
		require.NoError(t, err)
		b.Release()
		require.Equal(t, 10*ms, pf.Stats().WaitProducer)
		require.Equal(t, 10*ms, pf.Stats().Wait())
		require.Zero(t, pf.Stats().Body)
		require.NoError(t, r.Close())
		require.NoError(t, pf.Close())
	})
}
