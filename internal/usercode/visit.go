package usercode

import (
	"sync"
	"time"

	"github.com/leat-go/leat/loader"
)

// A Place is a batch that the code is called for: its epoch, its number there, and the
// position of its first sample.
type Place struct {
	Epoch int
	Batch int
	First int64
}

// A Visit is where a goroutine of the pipeline is in the user's code, for the report
// on code that does not return. The zero value is ready to use.
type Visit struct {
	mu     sync.Mutex
	at     Place
	inside bool
	exit   error // of code that ended the goroutine
}

// Of runs the user's code for a batch. Its panic becomes a *loader.PanicError. Code that
// calls runtime.Goexit ends the caller too, whose deferred calls find the error by Exited.
func (v *Visit) Of(at Place, code func() error) error {
	v.set(at, true)
	defer v.set(at, false)
	return Call(code, v.ended)
}

func (v *Visit) ended(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.exit = err
}

// Exited is how the user's code ended the goroutine that calls it, and at which batch.
func (v *Visit) Exited() (Place, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at, v.exit
}

func (v *Visit) set(at Place, inside bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at, v.inside = at, inside
}

// Stuck is the report on code that has been waited for, a *loader.StuckError, nil if the
// goroutine is not in it: then it is on its way, however slow the machine.
func (v *Visit) Stuck(what string, grace time.Duration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.inside {
		return nil
	}
	return &loader.StuckError{Epoch: v.at.Epoch, Batch: v.at.Batch, Sample: -1, Position: v.at.First, Shard: -1, Stage: what, Grace: grace}
}
