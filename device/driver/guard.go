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

// Error is one line, with the place of the panic; Stack and %+v have the way there.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v%s", p.Value, userCode(p.Stack)) }

// Format implements fmt.Formatter: %+v adds the stack.
func (p *Panic) Format(s fmt.State, verb rune) { FormatError(s, verb, p) }

// Unwrap is the panic's value if that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Goexit is why a device ended whose kernel or host function, in Go, called
// runtime.Goexit, as the FailNow of package testing does.
type Goexit struct{ Stack []byte }

// Error is one line, with the place of the call; Stack and %+v have the way there.
func (g *Goexit) Error() string {
	return "runtime.Goexit was called, as t.FailNow does" + userCode(g.Stack)
}

// Format implements fmt.Formatter: %+v adds the stack.
func (g *Goexit) Format(s fmt.State, verb rune) { FormatError(s, verb, g) }

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
