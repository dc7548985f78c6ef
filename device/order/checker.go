package order

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/leat-go/leat/device/driver"
)

// Options say what a Checker does with what it finds. The zero value is ready to use.
type Options struct {
	// ListOnly makes calls go on as if nothing had been found. Without it, the call
	// that would make the second access returns the report and submits nothing.
	ListOnly bool
	// Report, if not nil, is called with every new report, by the goroutine whose
	// call it is about. It must not call a device.
	Report func(*Error)
}

// A Checker watches the devices that it wraps, all of one kind or not, and knows what
// orders their work. It is safe for concurrent use.
type Checker struct {
	options Options

	mu          sync.Mutex
	host        clock // what the host has seen the end of
	hostVersion uint64
	streams     []*stream // by index
	ended       []*stream // those freed whose index is not in use again
	memory      memory
	shadow      shadow
	changes     uint64 // accesses noted so far
	swept       int    // cells left by the last sweep
	sites       map[site]*site
	spare       []clock
	reports     []*Error
	known       map[pair]struct{}
}

// pair is a report without its particulars: another of the same two calls is not new.
type pair struct{ first, second *site }

// mostReports bounds the list.
const mostReports = 1000

// New makes a Checker.
func New(o Options) *Checker {
	return &Checker{options: o, sites: make(map[site]*site), known: make(map[pair]struct{})}
}

// Default is the Checker of this process's environment: it returns reports from the
// calls, and prints each new one on standard error.
var Default = sync.OnceValue(func() *Checker {
	return New(Options{Report: func(e *Error) { fmt.Fprintln(os.Stderr, e) }})
})

// FromEnvironment is d, watched by Default if LEAT_ORDER in the environment is true, as
// strconv.ParseBool has it. Any value that is neither true, false nor empty is an error:
// a program that was to be checked would else run unchecked. The drivers of this module
// call it for every device that their Open opens.
func FromEnvironment(d driver.Device) (driver.Device, error) {
	value := os.Getenv("LEAT_ORDER")
	if value == "" {
		return d, nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return nil, &driver.Error{Op: "Open", Device: driver.DeviceName(d.Properties()), Err: driver.ErrInvalid,
			Hint: fmt.Sprintf("LEAT_ORDER is %q, want 1 (every access is checked) or 0", value)}
	}
	if !on {
		return d, nil
	}
	return Default().Wrap(d), nil
}

// Reports are what was found so far, one of each pair of calls, the oldest first and
// 1000 at most.
func (c *Checker) Reports() []*Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Error(nil), c.reports...)
}

// Err is all of Reports as one error, nil if there are none: what a test requires.
func (c *Checker) Err() error {
	var errs []error
	for _, e := range c.Reports() {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// A finding is a report in the making: what describing it needs, for which the mutex
// is given up.
type finding struct {
	device        *Device
	first         access
	second        *site
	stream        *stream // second's; nil is the host
	write         bool
	lo, hi        uint64 // what both use
	block         *block
	behind        mark
	recorded, new bool
}

// find looks in m for an access that one of the spans, by work that comes after seen, is
// unordered with. The caller holds c.mu.
func (c *Checker) find(d *Device, m *shadow, spans []span, seen clock, s *stream, by *site) (f finding, found bool) {
	for _, x := range spans {
		if x.hi <= x.lo {
			continue
		}
		first, at, found := m.conflict(x.lo, x.hi, x.write, seen)
		if !found {
			continue
		}
		f = finding{device: d, first: first, second: by, stream: s, write: x.write, lo: at.lo, hi: at.hi, block: c.memory.find(at.lo)}
		f.behind, f.recorded = first.stream.behind(first.number)
		p := pair{first.site, by}
		if _, ok := c.known[p]; !ok && len(c.known) < mostReports {
			c.known[p] = struct{}{}
			f.new = true
		}
		return f, true
	}
	return f, false
}

// note adds the spans to what m knows of memory. The caller holds c.mu.
func (c *Checker) note(m *shadow, s *stream, by *site, spans []span) {
	s.last++
	s.seen.set(s.index, s.last)
	for _, x := range spans {
		if x.hi > x.lo {
			m.add(access{stream: s, number: s.last, write: x.write, site: by, block: c.memory.find(x.lo)}, x.lo, x.hi, s.seen)
			c.changes++
		}
	}
	if m == &c.shadow && c.shadow.cells > 2*c.swept+sweepFrom {
		c.shadow.sweep(c.host)
		c.swept = c.shadow.cells
	}
}

const sweepFrom = 4096 // cells

// report describes a finding and keeps it. It is called without the mutex.
func (c *Checker) report(f finding) *Error {
	e := &Error{First: f.first.describe(), Offset: int64(f.lo), Bytes: int64(f.hi - f.lo)}
	e.Second = Access{Op: f.second.op, Kernel: f.second.kernel, Write: f.write, Host: f.stream == nil, Device: f.device.name}
	e.Second.Place, e.Second.Caller = f.second.place()
	if f.stream != nil {
		e.Second.Stream, e.Second.Device = f.stream.name, f.stream.device.name
	}
	who := e.Second.who()
	if f.block != nil {
		e.Offset -= int64(f.block.lo)
	}
	e.Second.Memory, e.Hint = f.block.name(f.lo, f.hi)
	e.First.Memory = e.Second.Memory
	if f.first.block != f.block {
		e.First.Memory, _ = f.first.block.name(f.lo, f.hi)
	}
	if f.recorded {
		at, _ := f.behind.site.place()
		e.Event = f.behind.event
		event := "an unnamed event"
		if e.Event != "" {
			event = fmt.Sprintf("event %q", e.Event)
		}
		e.Missing = fmt.Sprintf("%s has not waited for %s, recorded behind that at %s", who, event, at)
	} else {
		e.Missing = fmt.Sprintf("no event was recorded behind that, and %s has waited for nothing else", who)
	}
	if !f.new {
		return e
	}
	c.mu.Lock()
	c.reports = append(c.reports, e)
	c.mu.Unlock()
	if c.options.Report != nil {
		c.options.Report(e)
	}
	return e
}

func (a *access) describe() Access {
	x := Access{Op: a.site.op, Kernel: a.site.kernel, Write: a.write, Stream: a.stream.name, Device: a.stream.device.name}
	x.Place, x.Caller = a.site.place()
	return x
}

// snapshot is a copy of seen, for a wait that is to grant it. The caller holds c.mu.
func (c *Checker) snapshot(seen clock) clock {
	var s clock
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	s.copyOf(seen)
	return s
}

// grant makes the host, or the witness to if it is not nil, come after a snapshot, if
// the wait for it has succeeded, and takes it back.
func (c *Checker) grant(seen clock, to *witness, waited bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !waited:
	case to != nil:
		to.seen.join(seen)
	default:
		c.sees(seen)
	}
	c.spare = append(c.spare, seen)
}
