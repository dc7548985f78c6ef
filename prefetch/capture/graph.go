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
	uses       int64
	unsure     int64 // its part of the Step's
}

// graph is the one for b's place, nil if there is no room for another.
func (s *step) graph(l *lane, b prefetch.Batch) *graph {
	id := s.locate(b)
	for _, g := range l.graphs[id] {
		if slices.Equal(g.places, s.places) {
			return g
		}
	}
	if s.graphs == s.room {
		s.tally.note("there is no room for more graphs: batches in other places, and of other lengths, are submitted call by call; see Options.Graphs")
		return nil
	}
	s.graphs++
	g := &graph{places: slices.Clone(s.places), class: l.class(id, s.places)}
	l.graphs[id] = append(l.graphs[id], g)
	return g
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
