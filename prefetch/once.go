package prefetch

import "sync"

// once runs a Close. Who calls it meanwhile waits for the first call and gets its
// error: what they free next may be what the first still waits for. A call after it
// has nothing left to say.
//
// It is no sync.Once, since waiting for a mutex holds up the virtual time of a test.
type once struct {
	mu   sync.Mutex
	done chan struct{} // made by the first call, closed at its end
	over bool
	err  error // set before done is closed
}

func (o *once) do(f func() error) error {
	o.mu.Lock()
	switch {
	case o.over:
		o.mu.Unlock()
		return nil
	case o.done != nil:
		o.mu.Unlock()
		<-o.done
		return o.err
	}
	o.done = make(chan struct{})
	o.mu.Unlock()
	defer o.end()
	o.err = f()
	return o.err
}

func (o *once) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	close(o.done)
}
