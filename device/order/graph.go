package order

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device/driver"
)

// A capture is what is known of captured work, in a world of its own: its streams and
// their clocks are branches, and its accesses lie in a shadow that nobody else looks at.
// Guarded by the Checker's mutex.
type capture struct {
	device   *Device
	branches []*stream
	streams  []*stream // that they stand for
	shadow   shadow
	uses     []nodeUse
}

// A nodeUse is what one captured call uses.
type nodeUse struct {
	site  *site
	label string // for reports
	spans []span
}

// A graph is what its nodes use, in an order in which they could run.
type graph struct{ uses []nodeUse }

// An exec is a graph that is launched.
type exec struct {
	graph *graph
	seen  clock // what comes before its next launch: the ones before
}

// join makes s's work be captured, if it is not yet.
func (p *capture) join(s *stream) {
	if s.capture != nil {
		return
	}
	s.capture = p
	s.branch = &stream{device: s.device, name: s.name, index: len(p.branches)}
	p.branches = append(p.branches, s.branch)
	p.streams = append(p.streams, s)
}

// end makes the streams what they were.
func (p *capture) end() {
	for _, s := range p.streams {
		s.capture, s.branch = nil, nil
	}
}

// place is where s's next work is submitted: the stream itself, which comes after all
// that the host has seen, and the memory of the world; or the branch that stands for it in
// a capture.
func (s *stream) place() (*stream, *shadow) {
	if s.branch != nil {
		return s.branch, &s.capture.shadow
	}
	s.submits()
	return s, &s.device.checker.shadow
}

// keep notes what a call uses if it was captured.
func (s *stream) keep(by *site, spans []span) {
	if s.capture != nil {
		s.capture.uses = append(s.capture.uses, nodeUse{site: by, spans: append([]span(nil), spans...)})
	}
}

// captured reports whether the stream's work is being captured.
func (d *Device) captured(h driver.Stream) bool {
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	s := d.handles[h]
	return s != nil && s.stream.capture != nil
}

func (d *Device) grapher(op string) (driver.Grapher, error) {
	g, ok := d.Device.(driver.Grapher)
	if !ok {
		return nil, &driver.Error{Op: op, Device: d.name, Err: driver.ErrUnsupported}
	}
	return g, nil
}

// BeginCapture, and every method below, is driver.Grapher's.
func (d *Device) BeginCapture(h driver.Stream) error {
	g, err := d.grapher("BeginCapture")
	if err != nil {
		return err
	}
	if err := g.BeginCapture(h); err != nil {
		return d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	if s := d.handles[h]; s != nil {
		(&capture{device: d}).join(s.stream)
	}
	return nil
}

func (d *Device) EndCapture(h driver.Stream) (driver.Graph, error) {
	g, err := d.grapher("EndCapture")
	if err != nil {
		return 0, err
	}
	handle, err := g.EndCapture(h)
	if errors.Is(err, driver.CaptureUnmatched) || errors.Is(err, driver.CaptureWrongThread) {
		return 0, err // the capture, if there is one, goes on
	}
	p := d.endCapture(h)
	if err != nil {
		return 0, d.ended(err)
	}
	made := new(graph)
	if p != nil {
		made.uses = p.uses
	}
	for i := range made.uses {
		made.uses[i].name()
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	d.graphs[handle] = made
	return handle, nil
}

// endCapture is the capture that began on h and is at its end, nil if there is none.
func (d *Device) endCapture(h driver.Stream) *capture {
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	s := d.handles[h]
	if s == nil || s.stream.capture == nil {
		return nil
	}
	p := s.stream.capture
	p.end()
	return p
}

// name makes the label of the call. It is called without the mutex.
func (u *nodeUse) name() {
	what := u.site.kernel
	if what == "" {
		what = u.site.op
	}
	at, _ := u.site.place()
	u.label = fmt.Sprintf("%s captured at %s", what, at)
}

func (d *Device) Capturing(h driver.Stream) (bool, error) {
	g, err := d.grapher("Capturing")
	if err != nil {
		return false, err
	}
	captured, err := g.Capturing(h)
	return captured, d.ended(err)
}

func (d *Device) GraphNodes(h driver.Graph) ([]driver.Node, error) {
	g, err := d.grapher("GraphNodes")
	if err != nil {
		return nil, err
	}
	nodes, err := g.GraphNodes(h)
	return nodes, d.ended(err)
}

func (d *Device) FreeGraph(h driver.Graph) error {
	g, err := d.grapher("FreeGraph")
	if err != nil {
		return err
	}
	if err := g.FreeGraph(h); err != nil {
		return d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	delete(d.graphs, h)
	return nil
}

func (d *Device) Instantiate(h driver.Graph) (driver.Exec, error) {
	g, err := d.grapher("Instantiate")
	if err != nil {
		return 0, err
	}
	x, err := g.Instantiate(h)
	if err != nil {
		return 0, d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	if of := d.graphs[h]; of != nil {
		d.execs[x] = &exec{graph: of}
	}
	return x, nil
}

func (d *Device) FreeExec(x driver.Exec) error {
	g, err := d.grapher("FreeExec")
	if err != nil {
		return err
	}
	if err := g.FreeExec(x); err != nil {
		return d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	delete(d.execs, x)
	return nil
}

func (d *Device) UpdateExec(x driver.Exec, h driver.Graph) error {
	g, err := d.grapher("UpdateExec")
	if err != nil {
		return err
	}
	if err := g.UpdateExec(x, h); err != nil {
		return d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	if known, of := d.execs[x], d.graphs[h]; known != nil && of != nil {
		known.graph = of
	}
	return nil
}
