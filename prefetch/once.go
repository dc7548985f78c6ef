package prefetch

import "sync"

// once runs a Close. Who calls it again waits for the first call and gets its error:
// what it frees next may be what the first still waits for.
//
// It is no sync.Once, since waiting for a mutex holds up the virtual time of a test.
type once struct {
	mu   sync.Mutex
	done chan struct{} // made by the first call, closed at its end
	err  error         // set before
}

func (o *once) do(f func() error) error {
	o.mu.Lock()
	if o.done != nil {
		o.mu.Unlock()
		<-o.done
		return o.err
	}
	o.done = make(chan struct{})
	o.mu.Unlock()
	defer close(o.done)
	o.err = f()
	return o.err
}
