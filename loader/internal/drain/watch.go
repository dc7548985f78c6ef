package drain

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/leat-go/leat/loader/source"
)

// errWatched is the failure of a watched read.
var errWatched = errors.New("this read fails")

// EveryFailure opens files again and again, each time with another of the reads failing, until
// none is left to fail. Each failure must be what open returns, and no file may stay open: not
// then, and not behind Close.
func EveryFailure(t *testing.T, files []source.Source, open func(files []source.Source) (io.Closer, error)) {
	t.Helper()
	for k := int64(0); k < 10_000; k++ {
		w := &watch{}
		w.left.Store(k)
		var watched []source.Source
		for _, f := range files {
			watched = append(watched, watchedSource{w, f})
		}
		d, err := open(watched)
		if w.left.Load() >= 0 { // none has failed
			if err != nil {
				t.Fatal("without a failure:", err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, errWatched) {
			t.Fatalf("read %d failed, and the error is %v", k, err)
		}
		if n := w.open.Load(); n != 0 {
			t.Fatalf("%d files stay open behind failure %d: %v", n, k, err)
		}
		if w.left.Load() >= 0 {
			return
		}
	}
	t.Fatal("it reads without an end")
}

// watch counts reads and open files.
type watch struct {
	left atomic.Int64 // reads before the one that fails
	open atomic.Int64
}

type watchedSource struct {
	watch *watch
	source.Source
}

func (s watchedSource) Stat(ctx context.Context) (source.Info, error) {
	return source.Stat(ctx, s.Source)
}

func (s watchedSource) Open(ctx context.Context) (source.File, error) {
	f, err := s.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	s.watch.open.Add(1)
	read := func(ctx context.Context, p []byte, off int64) (int, error) {
		if s.watch.left.Add(-1) == -1 {
			return 0, errWatched
		}
		return f.ReadAt(ctx, p, off)
	}
	return source.NewFile(f.Name(), source.Info{Size: f.Size(), Version: f.Version()}, read, func() error {
		s.watch.open.Add(-1)
		return f.Close()
	}), nil
}
