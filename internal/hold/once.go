package hold

import "sync"

// A Once runs a Close. The zero value is ready to use.
type Once struct {
	mu   sync.Mutex
	done chan struct{} // made by the first call, closed at its end
	over bool
	err  error // set before done is closed
}

// Do calls f, once. A call during the first one waits for it and returns its error: what
// its caller frees next may be what the first call still waits for. A later call returns
// nil.
func (o *Once) Do(f func() error) error {
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

func (o *Once) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	close(o.done)
}
