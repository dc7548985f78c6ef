package driver

import (
	"errors"
	"fmt"
	"strings"
)

// Format implements fmt.Formatter: %+v adds the stack of a Go kernel or a host function
// that panicked.
func (e *Error) Format(s fmt.State, verb rune) { FormatError(s, verb, e) }

// FormatError is the Format of an error: what its Error returns, to which %+v adds the
// stack of a *Panic or a *Goexit in it.
func FormatError(s fmt.State, verb rune, err error) {
	fmt.Fprintf(s, fmt.FormatString(s, verb), err.Error())
	if verb != 'v' || !s.Flag('+') {
		return
	}
	var p *Panic
	var g *Goexit
	switch {
	case errors.As(err, &p):
		fmt.Fprintf(s, "\n\n%s", p.Stack)
	case errors.As(err, &g):
		fmt.Fprintf(s, "\n\n%s", g.Stack)
	}
}

// userCode is where a stack, of runtime/debug.Stack, is in the user's code, as the end of
// a message in one line; empty if it does not tell.
func userCode(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") { // what is above has recovered from it
			lines = lines[i+1:]
			break
		}
	}
	for i, line := range lines[:max(0, len(lines)-1)] {
		if strings.HasPrefix(line, "created by ") {
			break
		}
		file, ok := strings.CutPrefix(lines[i+1], "\t")
		if !ok || passedOver(line) {
			continue
		}
		file, _, _ = strings.Cut(file, " +0x")
		return fmt.Sprintf(" (at %s)", file)
	}
	return ""
}

// passedOver reports whether a line of a stack is not a function of the user's, but the
// runtime's or the way into their code.
func passedOver(function string) bool {
	const module = "github.com/leat-go/leat/"
	for _, prefix := range [...]string{"\t", "panic(", "runtime.", "runtime/", "internal/", "testing.", "sync.",
		module + "device.", module + "device/driver.", module + "device/cpu.", module + "device/cuda."} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}
