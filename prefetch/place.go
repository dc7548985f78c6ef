package prefetch

import (
	"slices"
	"sync"

	"github.com/leat-go/leat/loader"
)

// A place is where a Prefetcher stands in the data: behind the last batch delivered, and
// never behind the last one produced (P5).
type place struct {
	loader *loader.Loader
	claim  loader.Claim

	mu       sync.Mutex
	cursor   loader.Cursor
	replaced replaced // of the cursor's epoch
}

// at is the place.
func (p *place) at() loader.Cursor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cursor
}

// state is the place as a State. The claim is told of later places only when the cursor is
// there, so what the loader knows of this one lasts meanwhile.
func (p *place) state() loader.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loader.StateAt(p.cursor)
}

// move is the place once all before after is delivered.
func (p *place) move(after loader.Cursor) {
	after = p.claim.Normalize(after)
	p.mu.Lock()
	p.cursor = after
	p.replaced.note(after)
	p.mu.Unlock()
	p.claim.Delivered(after)
}

// set makes cursor the place, which need not lie behind the last one.
func (p *place) set(cursor loader.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursor = cursor
	if p.replaced.before(cursor) != cursor.Substituted { // a state knows of others
		p.replaced = p.replaced[:0]
	}
	p.replaced.note(cursor)
}

// substituted is how many samples before a cursor were replaced, as far as it is known.
func (p *place) substituted(before loader.Cursor) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.replaced.before(before)
}

// finished reports whether all of a stated number of epochs are delivered.
func (p *place) finished() bool {
	epochs := p.loader.Options().Epochs
	return epochs > 0 && p.at().Epoch >= epochs
}

// replaced is the places of an epoch at which the number of substitutes rose, at most
// MaxSubstituted of the loader's options: what Seek needs to give a place its number.
type replaced []loader.Cursor

// note notes a place that the cursor comes to. What is known of places after it, from an
// earlier pass, stays, unless this pass has replaced fewer samples by now.
func (r *replaced) note(at loader.Cursor) {
	if len(*r) > 0 && (*r)[0].Epoch != at.Epoch {
		*r = (*r)[:0]
	}
	switch known := r.before(at); {
	case known > at.Substituted:
		*r = slices.DeleteFunc(*r, func(e loader.Cursor) bool { return e.Substituted > at.Substituted })
	case known < at.Substituted:
		*r = slices.DeleteFunc(*r, func(e loader.Cursor) bool { return e.Position >= at.Position && e.Substituted <= at.Substituted })
		i := slices.IndexFunc(*r, func(e loader.Cursor) bool { return e.Position > at.Position })
		if i < 0 {
			i = len(*r)
		}
		*r = slices.Insert(*r, i, at)
	}
}

// before is how many samples before a place were replaced.
func (r replaced) before(place loader.Cursor) int {
	n := 0
	for _, at := range r {
		if at.Epoch == place.Epoch && at.Position <= place.Position {
			n = at.Substituted
		}
	}
	return n
}
