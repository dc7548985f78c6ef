package cpu

import "time"

// A Span is a finished operation, for timelines.
type Span struct {
	// Op is the call that submitted it: "CopyH2D", "CopyD2H", "CopyD2D", "CopyPeer",
	// "Memset", "Launch" or "HostFunc", also of a graph's nodes; "LaunchGraph" is the time
	// that a modelled device takes before them.
	Op string
	// Kernel is the kernel's name, for a Launch.
	Kernel string
	// Stream is the stream's name.
	Stream string
	// Engine names what ran it: "H2D", "D2H", "copy" where one engine serves both
	// directions, "link" for CopyPeer, "launch" for LaunchGraph, "compute" or "host"; Number tells engines of
	// one name apart.
	Engine string
	Number int
	// Bytes is the length of a copy or a memset.
	Bytes int64
	// Start and End are times since the device was opened, by the model's clock or
	// measured.
	Start, End time.Duration
}

func (d *Device) trace(o *op, engine string, number int) {
	if d.options.Trace == nil {
		return
	}
	s := Span{
		Op: o.kind.String(), Stream: o.stream.name, Engine: engine, Number: number,
		Bytes: int64(len(o.dst)), Start: o.start, End: o.end,
	}
	if o.kind == launch {
		s.Kernel = o.launch.Kernel.Name
	}
	d.options.Trace(s)
}
