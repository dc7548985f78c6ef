package prefetch

import (
	"context"
	"slices"
	"sync"

	"github.com/leat-go/leat/internal/usercode"
)

// BeforeFree has f called before the memory of batches is freed: for what keeps its
// addresses, as a device.Exec does, and has to be closed before. It is called by Close, or
// by what frees the memory later, on a goroutine of its own and under a context that ends
// with Options.CloseTimeout. With an error nothing is freed for as long as the context's
// end is what causes it: f is called again then, without a limit. Any other error is part
// of Close's. f must not use the Prefetcher.
//
// cancel has f not called any more. Any goroutine may call both. After Close BeforeFree is ErrClosed.
func (p *Prefetcher) BeforeFree(f func(context.Context) error) (cancel func(), err error) {
	fs, added := &p.beforeFree, &freeing{f: f}
	if p.ahead.isClosed() || !fs.add(added) {
		return nil, ErrClosed
	}
	return func() { fs.remove(added) }, nil
}

// A freeing is one call of BeforeFree.
type freeing struct {
	f    func(context.Context) error
	done chan error   // of the call under way, nil if none is
	over func() error // whether that call's context has ended
}

// freeings are those of a Prefetcher.
type freeings struct {
	mu    sync.Mutex
	list  []*freeing
	begun bool // nothing is added any more
}

func (fs *freeings) add(f *freeing) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.begun {
		return false
	}
	fs.list = append(fs.list, f)
	return true
}

func (fs *freeings) remove(f *freeing) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.list = slices.DeleteFunc(fs.list, func(o *freeing) bool { return o == f })
}

// first is the one to be called next, nil if all have been.
func (fs *freeings) first() *freeing {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.begun = true
	if len(fs.list) == 0 {
		return nil
	}
	return fs.list[0]
}

// run calls all of them. One that has not returned when ctx ends is called on by the next
// run. Only one goroutine frees, so that there are no two runs at once.
func (fs *freeings) run(ctx context.Context) (first error) {
	for {
		f := fs.first()
		if f == nil {
			return first
		}
		err := f.call(ctx)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if first == nil {
			first = err
		}
		fs.remove(f)
	}
}

// call calls f, or goes on with a call that an earlier context was too short for, and calls
// it again if that one has ended for no other reason.
func (f *freeing) call(ctx context.Context) error {
	for {
		if f.done == nil {
			f.begin(ctx)
		}
		select {
		case err := <-f.done:
			f.done = nil
			if err != nil && f.over() != nil && ctx.Err() == nil {
				continue
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin calls f on a goroutine, which ends when f does.
func (f *freeing) begin(ctx context.Context) {
	f.over, f.done = ctx.Err, make(chan error, 1)
	go func() {
		f.done <- usercode.Call(func() error { return f.f(ctx) }, func(err error) { f.done <- err })
	}()
}
