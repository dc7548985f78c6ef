package loader

import (
	"fmt"
	"iter"
)

// attempts is how many substitutes are tried for one sample. Where a hundredth
// of the samples are bad, as many bad ones in a row do not happen.
const attempts = 16

// Candidates yields the samples that Substitute tries in the place of one that cannot be
// read, in their order: of the loader's dataset, for a position of an epoch. It panics for
// samples without random access, and for negative numbers.
func (l *Loader) Candidates(epoch int, position int64) iter.Seq[int] {
	if !l.known || epoch < 0 || position < 0 {
		panic(fmt.Sprintf("loader: Candidates for position %d of epoch %d", position, epoch))
	}
	return func(yield func(int) bool) {
		c := candidates{loader: l, epoch: epoch, position: position}
		if l.excluded != nil {
			order := l.order(epoch)
			_, c, _, _ = l.standIn(epoch, position, order.At(position))
		}
		for range attempts {
			if index, ok := c.next(); !ok || !yield(index) {
				return
			}
		}
	}
}
