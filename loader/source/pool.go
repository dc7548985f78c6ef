package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
)

// Pool bounds how many files are open at once: a process may have some thousands, and a
// dataset a million. Its methods, and those of all its Files, may be called by several
// goroutines at once.
//
// A File of a Pool opens its file when it is read, and the Pool closes the one that was
// not read for longest, or nearly, when there are too many. No reader notices.
type Pool struct {
	limit int

	mu   sync.Mutex
	open []*pooled // those that are open, in a circle
	hand int       // of the circle, where the next is looked for that was not read lately
}

// NewPool makes a Pool that keeps up to so many files open, and 256 if that is 0 or less.
// Beside these are those that are being opened or that a read is still in: one at most for
// each goroutine that reads.
func NewPool(limit int) *Pool {
	if limit <= 0 {
		limit = 256
	}
	return &Pool{limit: limit}
}

// Source is s through the Pool. Its Files are as those of s, in any number: one that is
// not read holds no more than some memory. If the file is another one when it has to be
// opened again, by its Version, a read is an *Error that wraps ErrChanged.
func (p *Pool) Source(s Source) Source { return poolSource{p, s} }

// Open is the number of files that the Pool has open.
func (p *Pool) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

type poolSource struct {
	pool *Pool
	of   Source
}

// Name implements Source.
func (s poolSource) Name() string { return s.of.Name() }

// Stat implements Stater.
func (s poolSource) Stat(ctx context.Context) (Info, error) { return Stat(ctx, s.of) }

// Open implements Source. The file is opened, so that what is wrong with it is told here.
func (s poolSource) Open(ctx context.Context) (File, error) {
	f := &pooled{pool: s.pool, source: s.of}
	opened, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	f.info = Info{Size: (*opened).Size(), Version: (*opened).Version()}
	return f, nil
}

// pooled is a File that is open now and then.
type pooled struct {
	pool   *Pool
	source Source
	info   Info // not yet set while the first file is opened

	file   atomic.Pointer[File] // nil while it is not open; written under the pool's mutex
	recent atomic.Bool          // read since the hand came by

	// Guarded by the pool's mutex.
	place   int           // in pool.open, if it is open
	opening chan struct{} // closed when the goroutine that opens the file is done; nil if none does
	closed  bool
}

func (f *pooled) Name() string    { return f.source.Name() }
func (f *pooled) Size() int64     { return f.info.Size }
func (f *pooled) Version() string { return f.info.Version }

// ReadAt implements File.
func (f *pooled) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	for {
		opened := f.file.Load()
		if opened == nil {
			var err error
			if opened, err = f.open(ctx); err == fs.ErrClosed {
				return 0, &Error{Source: f.Name(), Op: opRead, Offset: off, Err: err}
			} else if err != nil {
				return 0, err
			}
		}
		if !f.recent.Load() { // else all readers would write to one cache line
			f.recent.Store(true)
		}
		n, err := (*opened).ReadAt(ctx, p, off)
		if n == 0 && errors.Is(err, fs.ErrClosed) && f.file.Load() != opened {
			continue // the pool closed it just before
		}
		return n, err
	}
}

// open opens the file, or waits for another goroutine that does. After Close the error is
// fs.ErrClosed.
func (f *pooled) open(ctx context.Context) (*File, error) {
	for {
		f.pool.mu.Lock()
		opened, opening := f.file.Load(), f.opening
		switch {
		case f.closed:
			f.pool.mu.Unlock()
			return nil, fs.ErrClosed
		case opened != nil:
			f.pool.mu.Unlock()
			return opened, nil
		case opening == nil:
			f.opening = make(chan struct{})
			f.pool.mu.Unlock()
			return f.reopen(ctx)
		}
		f.pool.mu.Unlock()
		select {
		case <-opening: // it may have failed: its context is another
		case <-ctx.Done():
			return nil, failed(opOpen, f.Name(), context.Cause(ctx))
		}
	}
}

// reopen opens the file. Whatever the Source does, others may try afterwards.
func (f *pooled) reopen(ctx context.Context) (opened *File, err error) {
	var extra File // to be closed
	defer func() {
		f.pool.mu.Lock()
		if opened != nil {
			extra = f.pool.admit(f, opened)
		}
		close(f.opening)
		f.opening = nil
		f.pool.mu.Unlock()
		if extra != nil {
			_ = extra.Close()
		}
	}()
	file, err := f.source.Open(ctx)
	if err == nil && file == nil {
		err = failed(opOpen, f.Name(), errNoFile)
	}
	if err != nil {
		return nil, err
	}
	if f.info.Version != "" && file.Version() != f.info.Version {
		extra = file
		return nil, failed(opOpen, f.Name(), fmt.Errorf("%w: its version was %s and is %s", ErrChanged, f.info.Version, file.Version()))
	}
	return &file, nil
}

var errNoFile = errors.New("Open returned neither a File nor an error")

// admit takes an open file in. It returns the one that there is no room for any more, or
// nil. The caller has the mutex.
func (p *Pool) admit(f *pooled, opened *File) (extra File) {
	if f.closed {
		return *opened
	}
	f.file.Store(opened)
	if len(p.open) < p.limit {
		f.place = len(p.open)
		p.open = append(p.open, f)
		return nil
	}
	for p.open[p.hand].recent.Swap(false) {
		p.hand = (p.hand + 1) % p.limit
	}
	old := p.open[p.hand]
	p.open[p.hand], f.place = f, p.hand
	p.hand = (p.hand + 1) % p.limit
	return *old.file.Swap(nil)
}

// Close implements File.
func (f *pooled) Close() error {
	f.pool.mu.Lock()
	f.closed = true
	opened := f.file.Swap(nil)
	if opened != nil {
		f.pool.remove(f)
	}
	f.pool.mu.Unlock()
	if opened == nil {
		return nil
	}
	return (*opened).Close()
}

// remove takes a file out of the circle. The caller has the mutex.
func (p *Pool) remove(f *pooled) {
	last := len(p.open) - 1
	p.open[f.place] = p.open[last]
	p.open[f.place].place = f.place
	p.open[last] = nil
	p.open = p.open[:last]
	if p.hand == last {
		p.hand = 0
	}
}
