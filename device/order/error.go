package order

import (
	"fmt"
	"strings"
)

// An Access is one of the two accesses of a report.
type Access struct {
	// Op is the call: "CopyH2D", "Free", "HostReads". Kernel is what Launch launched.
	Op, Kernel string
	// Write is false for a read.
	Write bool
	// Stream is the stream's name; empty for the host.
	Stream string
	// Device is the name of the stream's device, or the host access's.
	Device string
	// Memory says what memory it used, as it was then: freed memory may have become
	// another buffer's.
	Memory string
	// Place is the call's file and line; Caller is that of the user's code which
	// called for it, empty if that is the same.
	Place, Caller string
}

func (a *Access) who() string {
	if a.Stream == "" {
		return "the host"
	}
	return fmt.Sprintf("stream %q of %s", a.Stream, a.Device)
}

func (a *Access) call() string {
	s := a.Op
	if a.Kernel != "" {
		s += " of " + a.Kernel
	}
	if a.Stream != "" {
		s += " on " + a.who()
	} else {
		s += " by the host"
	}
	s += " (" + a.Place
	if a.Caller != "" {
		s += ", called for at " + a.Caller
	}
	return s + ")"
}

// An Error is a report: two accesses to the same memory, at least one of them a write,
// that nothing orders.
type Error struct {
	// First was submitted before Second, which is the call that reports it.
	First, Second Access
	// Offset and Bytes are what both use of Second's memory.
	Offset, Bytes int64
	// Missing is the missing edge in words.
	Missing string
	// Event is the name of the event that would have ordered the two, if one was
	// recorded: the first on First's stream behind it.
	Event string
	// Hint is what to do, a sentence; often empty.
	Hint string
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "order: %s ", e.Second.call())
	switch {
	case e.Second.frees():
		b.WriteString("frees")
	case e.Second.Op == opAtRest:
		b.WriteString("claims")
	case e.Second.Write:
		b.WriteString("writes")
	default:
		b.WriteString("reads")
	}
	fmt.Fprintf(&b, " %s, bytes %d to %d, ", e.Second.Memory, e.Offset, e.Offset+e.Bytes)
	if e.First.Memory != e.Second.Memory {
		fmt.Fprintf(&b, "then %s, ", e.First.Memory)
	}
	fmt.Fprintf(&b, "which %s ", e.First.call())
	switch {
	case e.First.Write && !e.Second.Write:
		b.WriteString("may not have written yet")
	case e.First.Write:
		b.WriteString("may still write")
	default:
		b.WriteString("may still read")
	}
	b.WriteString(": " + e.Missing)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

func (a *Access) frees() bool {
	return a.Op == opFree || a.Op == opFreeHost || a.Op == opUnregisterHost
}
