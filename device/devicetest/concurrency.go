package devicetest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// together runs body on n goroutines and waits for them; the first error of any
// fails the test.
func (f *fixture) together(n int, body func(i int) error) {
	f.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = body(i) })
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(f, err, "goroutine %d", i)
	}
}

// steps makes calls until one fails.
func steps(calls ...func() error) error {
	for _, call := range calls {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

func goroutinesApart(f *fixture) {
	const n, laps, bytes = 64, 20, 1024
	v, in, out := f.buffer(n*bytes), f.host(n*bytes), f.host(n*bytes)
	streams, events := make([]*device.Stream, n), make([]*device.Event, n)
	for i := range n {
		streams[i], events[i] = f.stream("s"), f.event("e")
	}
	f.together(n, func(i int) error {
		s, e := streams[i], events[i]
		from, to := i*bytes, (i+1)*bytes
		mine := v.Slice(int64(from), bytes)
		for lap := range laps {
			copy(in[from:to], all(byte(i+lap), bytes))
			err := steps(
				func() error { return s.CopyH2D(mine, in[from:to]) },
				func() error { return s.Launch(add(mine, 1)) },
				func() error { return s.CopyD2H(out[from:to], mine) },
				func() error { return s.Record(e) },
				func() error { return streams[(i+1)%n].Wait(e) },
				func() error { return e.Synchronize(f.ctx) },
			)
			if err != nil {
				return err
			}
			if want := all(byte(i+lap+1), bytes); string(want) != string(out[from:to]) {
				f.Errorf("goroutine %d, lap %d: other bytes than its own", i, lap)
			}
		}
		return nil
	})
}

func goroutinesTogether(f *fixture) {
	const n, laps = 64, 50
	s, v, h := f.stream("s"), f.buffer(8), f.host(8)
	f.do(s.Memset(v, 0))
	f.together(n, func(i int) error {
		l := add(v, 1)
		for range laps {
			if err := s.Launch(l); err != nil {
				return err
			}
		}
		return s.Synchronize(f.ctx)
	})
	f.do(s.CopyD2H(h, v))
	f.synchronize(s)
	require.Equal(f, all(n*laps%256, 8), h)
}

// A batch's worth of calls, over and over: neither Go nor the driver may allocate.
func steadyState(f *fixture) {
	up, compute := f.stream("up"), f.stream("compute")
	ready, consumed := f.event("ready"), f.event("consumed")
	v, h := f.buffer(4096), f.host(4096)
	l := add(v, 1)
	batch := func() {
		f.do(up.Wait(consumed))
		f.do(up.CopyH2D(v, h))
		f.do(up.Record(ready))
		f.do(compute.Wait(ready))
		f.do(compute.Launch(l))
		f.do(compute.Memset(v.Slice(0, 64), 1))
		f.do(compute.CopyD2H(h, v))
		f.do(compute.Record(consumed))
		f.done(ready)
		f.do(consumed.Synchronize(f.ctx))
	}
	f.do(compute.Record(consumed))
	for range 100 {
		batch()
	}
	before := f.dev.Usage().Allocations
	allocs := testing.AllocsPerRun(200, batch)
	require.Equal(f, before, f.dev.Usage().Allocations, "allocations of the driver")
	if raceEnabled {
		return // the detector allocates
	}
	require.Zero(f, allocs, "Go allocations a batch")
}
