package prefetch

import "github.com/leat-go/leat/loader"

// replaced is the places of an epoch at which the number of substitutes rose, at most
// Options.MaxSubstituted of the loader: what Seek needs to give a place its number.
type replaced []loader.Cursor

// note notes a place that the cursor comes to.
func (r *replaced) note(at loader.Cursor) {
	last := loader.Cursor{Epoch: at.Epoch}
	if n := len(*r); n > 0 {
		last = (*r)[n-1]
	}
	if last.Epoch != at.Epoch {
		*r, last = (*r)[:0], loader.Cursor{}
	}
	if at.Substituted > last.Substituted {
		*r = append(*r, at)
	}
}

// before is how many samples before a place were replaced, as far as it is known.
func (r replaced) before(place loader.Cursor) int {
	n := 0
	for _, at := range r {
		if at.Epoch == place.Epoch && at.Position <= place.Position {
			n = at.Substituted
		}
	}
	return n
}

// replacedBefore is replaced.before of this Prefetcher.
func (p *Prefetcher) replacedBefore(place loader.Cursor) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.replaced.before(place)
}
