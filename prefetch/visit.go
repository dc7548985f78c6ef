package prefetch

import (
	"runtime/debug"
	"sync"
	"time"

	"github.com/leat-go/leat/loader"
)

// A visit is where a goroutine of the pipeline is in the user's code, for the report
// on code that does not return.
type visit struct {
	mu     sync.Mutex
	at     Position
	inside bool
	exit   error // of code that ended the goroutine
}

// of runs the user's code for a batch. Its panic becomes an error. Code that calls
// runtime.Goexit ends the caller too, whose deferred calls find the error by exited.
func (v *visit) of(at Position, code func() error) (err error) {
	v.set(at, true)
	defer v.set(at, false)
	returned := false
	defer func() {
		if returned {
			return
		}
		if r := recover(); r != nil {
			err = &loader.PanicError{Value: r, Stack: debug.Stack()}
		} else {
			v.ended(&loader.GoexitError{Stack: debug.Stack()})
		}
	}()
	err = code()
	returned = true
	return err
}

func (v *visit) ended(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.exit = err
}

// exited is how the user's code ended the goroutine that calls it, and at which batch.
func (v *visit) exited() (Position, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at, v.exit
}

func (v *visit) set(at Position, inside bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at, v.inside = at, inside
}

// stuck is the report on code that has been waited for, nil if the goroutine is not
// in it: then it is on its way, however slow the machine.
func (v *visit) stuck(what string, grace time.Duration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.inside {
		return nil
	}
	return &loader.StuckError{Epoch: v.at.Epoch, Batch: v.at.Batch, Sample: -1, Position: v.at.First, Shard: -1, Stage: what, Grace: grace}
}
