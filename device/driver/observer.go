package driver

// Observer is a Device that follows what happens to memory, and is told of what no
// other call shows. Package device finds it with ObserverOf among a driver's wrappers;
// where there is none, nobody is told anything.
type Observer interface {
	Device
	// HostAccess tells that the host reads mem (In), or overwrites it, from now on and
	// until it submits work that uses it. The error says that work may still use it.
	HostAccess(mem []byte, a Access) error
	// StreamAccess tells of work submitted to s by other means than a Device's calls.
	StreamAccess(s Stream, p Address, bytes int64, a Access) error
	// Describe gives the memory that p lies in a description for reports: that of
	// bytes from offset on, and what to do about a mistake with them, a sentence or
	// nothing. what is called at any time and must call no Device.
	Describe(p Address, what func(offset, bytes int64) (name, hint string))
	// NewWitness makes a Witness of this Device and of those observed with it.
	NewWitness() Witness
	// StreamIdle is StreamDone of which no order is taken.
	StreamIdle(s Stream) (bool, error)
}

// A Witness is a part of a program that waits on the host for events of its own: those
// that have it in their EventConfig. That it has seen the end of work orders nothing for
// the rest of the program, except what AtRest and Tell say.
type Witness interface {
	// AtRest tells that all that was submitted and uses the memory has ended, and that
	// others are told so, with the memory. The error says that it may not have.
	AtRest(p Address, bytes int64) error
	// Tell makes what the Witness has seen count for the whole program.
	Tell()
}

// ObserverOf is d or the first Observer inside d's wrappers, nil if there is none.
func ObserverOf(d Device) Observer {
	for {
		if o, ok := d.(Observer); ok {
			return o
		}
		w, ok := d.(Wrapper)
		if !ok {
			return nil
		}
		d = w.Unwrap()
	}
}

// StreamIdle is StreamDone for callers that take no order from the answer. An Observer does
// not either, if the wrappers around it have a method of that name.
func StreamIdle(d Device, s Stream) (bool, error) {
	if i, ok := d.(interface{ StreamIdle(Stream) (bool, error) }); ok {
		return i.StreamIdle(s)
	}
	return d.StreamDone(s)
}
