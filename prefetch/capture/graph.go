package capture

import (
	"slices"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/prefetch"
)

// A place is where a field of a batch lies, and as much of its shape as differs between
// batches: a ragged field is as long as its first two dimensions say.
type place struct {
	addr   device.Address
	extent extent
}

type extent struct {
	bytes  int64
	d0, d1 int
}

// An ident finds the graphs for a batch, of which there are several only if ragged fields
// have other lengths and, by chance, the same number of bytes.
type ident struct {
	first      device.Address
	bytes      int64 // of all fields
	len, valid int
}

// A graph is the step on batches that lie in one place. Until it has an exec it was not
// captured.
type graph struct {
	places []place
	class  *class
	exec   *device.Exec
}

// A class is of all places with batches of equal shape, where the step differs in the
// places alone.
type class struct {
	len, valid int
	extents    []extent
	nodes      []device.Node // of the first capture, with places relative to the batch
	uses, next int64
	unsure     int64 // its part of the Step's
}

// due counts a use and reports whether captures are to be compared at it: at the first 16,
// whenever a sixteenth more have passed, and if capturing is to be done anyway. What is
// done at every so many steps, people do at round numbers; so those are in it too, and the
// uses behind them, for who counts from 0.
func (c *class) due(anyway bool) bool {
	c.uses++
	n := c.uses
	if !anyway && n < c.next && !round(n) && !round(n-1) {
		return false
	}
	c.next = n + 1 + n/16
	return true
}

// round reports whether n is a power of two, or 1, 2 or 5 and zeros.
func round(n int64) bool {
	if n&(n-1) == 0 {
		return true
	}
	for n%10 == 0 {
		n /= 10
	}
	return n == 1 || n == 2 || n == 5
}

// graph is the one for b's place, nil if there is no room for another.
func (s *step) graph(l *lane, b prefetch.Batch) (*graph, error) {
	id := s.locate(b)
	for _, g := range l.graphs[id] {
		if slices.Equal(g.places, s.places) {
			return g, nil
		}
	}
	if s.graphs == s.room {
		s.tally.note("there is no room for more graphs: batches in other places, and of other lengths, are submitted call by call; see Options.Graphs")
		return nil, nil
	}
	s.graphs++
	g := &graph{places: slices.Clone(s.places), class: l.class(id, s.places)}
	l.graphs[id] = append(l.graphs[id], g)
	return g, nil
}

// locate notes where b's fields are.
func (s *step) locate(b prefetch.Batch) ident {
	if s.fields == nil {
		for _, f := range b.Fields() {
			s.fields = append(s.fields, f.Name)
		}
	}
	id := ident{len: b.Len(), valid: b.Valid()}
	s.places = s.places[:0]
	for _, name := range s.fields {
		f := b.Field(name)
		p := place{addr: f.View.Address(), extent: extent{bytes: f.View.Size(), d0: f.Shape[0]}}
		if len(f.Shape) > 1 {
			p.extent.d1 = f.Shape[1]
		}
		if id.bytes == 0 {
			id.first = p.addr
		}
		id.bytes += p.extent.bytes
		s.places = append(s.places, p)
	}
	return id
}

func (l *lane) class(id ident, places []place) *class {
	extents := make([]extent, len(places))
	for i := range places {
		extents[i] = places[i].extent
	}
	for _, c := range l.classes {
		if c.len == id.len && c.valid == id.valid && slices.Equal(c.extents, extents) {
			return c
		}
	}
	c := &class{len: id.len, valid: id.valid, extents: extents}
	l.classes = append(l.classes, c)
	return c
}
