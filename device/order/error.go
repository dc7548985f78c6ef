package order

import (
	"fmt"
	"strings"
)

// An Access is one of the two accesses of a report.
type Access struct {
	// Op is the call: "CopyH2D", "Free", "HostReads". Kernel is what Launch launched, and
	// for LaunchGraph the node: its kernel or its call, and where that was captured.
	Op, Kernel string
	// Write is false for a read.
	Write bool
	// Host is true for an access by the host, which is on no stream.
	Host bool
	// Stream is the stream's name; empty for the host and for a stream without a name.
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
	switch {
	case a.Host:
		return "the host"
	case a.Stream == "":
		return "an unnamed stream of " + a.Device
	}
	return fmt.Sprintf("stream %q of %s", a.Stream, a.Device)
}

func (a *Access) call() string {
	s := a.Op
	if a.Kernel != "" {
		s += " of " + a.Kernel
	}
	switch {
	case a.Host:
		s += " by the host"
	case a.Stream == "":
		s += " on " + a.who() + " (name it by StreamOptions.Name)"
	default:
		s += " on " + a.who()
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
	// recorded: the first on First's stream behind it. It is empty for an event without
	// a name, too.
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
