package driver

import (
	"fmt"
	"runtime/debug"
)

// Panic is why a device ended whose kernel or host function, in Go, panicked. Touching
// memory that isn't there counts: it ends a GPU just so.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.Value, p.Stack) }

// Unwrap is the panic's value if that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Goexit is why a device ended whose kernel or host function, in Go, called
// runtime.Goexit, as the FailNow of package testing does.
type Goexit struct{ Stack []byte }

func (g *Goexit) Error() string {
	return fmt.Sprintf("runtime.Goexit was called (t.FailNow does that)\n\n%s", g.Stack)
}

// Guard runs f on a goroutine of its own while the caller waits, and makes an error of
// a panic, *Panic, and of the goroutine's end, *Goexit. On a thread that isn't Go's
// either would end the process.
func Guard(f func()) error {
	done := make(chan error, 1)
	go func() {
		returned := false
		defer func() {
			v := recover()
			switch {
			case returned:
				done <- nil
			case v != nil:
				done <- &Panic{Value: v, Stack: debug.Stack()}
			default:
				done <- &Goexit{Stack: debug.Stack()}
			}
		}()
		debug.SetPanicOnFault(true)
		f()
		returned = true
	}()
	return <-done
}
