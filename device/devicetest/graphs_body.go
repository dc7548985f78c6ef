package devicetest

import (
	"errors"
	"runtime"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

func graphBodyFails(f *fixture) {
	f.graphs()
	s, v := f.stream("s"), f.buffer(64)
	before := f.dev.Usage()
	own := errors.New("own")
	_, err := s.Capture(func() error {
		f.do(s.Memset(v, 1))
		return own
	})
	require.Equal(f, own, err)
	f.usable(s)
	require.PanicsWithValue(f, "own", func() {
		_, _ = s.Capture(func() error {
			f.do(s.Memset(v, 1))
			panic("own")
		})
	})
	f.usable(s)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Capture(func() error { runtime.Goexit(); return nil })
	}()
	<-ended
	f.usable(s)
	_, err = s.Capture(nil)
	require.ErrorIs(f, err, device.ErrInvalid)
	require.Equal(f, before.Buffers+3, f.dev.Usage().Buffers, "those of usable")
	require.Equal(f, int64(3), f.dev.Usage().Graphs, "those of usable")
}

// What others do beside a capture is neither refused nor captured, and they may submit to
// the captured stream.
func graphBeside(f *fixture) {
	f.graphs()
	s, other, e := f.stream("s"), f.stream("other"), f.event("e")
	v, w, h := f.buffer(64), f.buffer(64), f.host(64)
	f.do(s.Memset(v, 0))
	f.synchronize(s)
	errs := make(chan error)
	beside := func() error {
		b, err := f.dev.Alloc(64)
		if err != nil {
			return err
		}
		p, err := f.dev.AllocHost(64, device.HostOptions{})
		if err != nil {
			return err
		}
		err = errors.Join(other.Memset(w, 5), other.CopyD2H(h, w), other.Record(e), e.Synchronize(f.ctx), other.Synchronize(f.ctx),
			s.Launch(add(v, 1)))
		_, asked := e.Done()
		return errors.Join(err, asked, b.Close(), p.Close())
	}
	x := f.exec(s, func() {
		go func() { errs <- beside() }()
		f.do(<-errs)
		f.do(s.Launch(add(v, 10)))
	})
	require.Equal(f, all(5, 64), h)
	f.do(x.Launch(s))
	require.Equal(f, all(11, 64), f.read(s, v))

	var capturing sync.WaitGroup
	for range 8 {
		s := f.stream("s")
		capturing.Go(func() {
			for range 20 {
				g, err := s.Capture(func() error { return s.Launch(add(v, 1)) })
				if err == nil {
					err = g.Close()
				}
				if err != nil {
					f.Error(err)
				}
			}
		})
	}
	capturing.Wait()
}
