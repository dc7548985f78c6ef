package loader

import (
	"fmt"
	"iter"
	"math/bits"

	"github.com/leat-go/leat/loader/internal/mix"
)

// attempts is how many substitutes are tried for one sample. Where a hundredth
// of the samples are bad, as many bad ones in a row do not happen.
const attempts = 16

// maxDraws is how many samples are drawn to find one that is not excluded. Where 99 of a
// hundred are, as many draws in a row find one but once in 10^17 times.
const maxDraws = 1 << 12

// errAllExcluded is the failure of a sample that is excluded, as all are that were drawn in
// its place.
var errAllExcluded = fmt.Errorf("excluded, as are %d samples that were drawn in its place", maxDraws)

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

// candidates are the samples that can be read at a position in the place of its own, in
// their order.
type candidates struct {
	loader   *Loader
	epoch    int
	position int64
	draws    uint64
}

// next is the next of them. ok is false if all that were drawn are excluded.
func (c *candidates) next() (index int, ok bool) {
	l := c.loader
	for range maxDraws {
		c.draws++
		h := mix.Hash(l.options.Seed, uint64(c.epoch), uint64(c.position), c.draws, 2)
		drawn, _ := bits.Mul64(h, uint64(l.split.samples))
		if l.excluded == nil || !l.leftOut(c.epoch, int(drawn)) {
			return int(drawn), true
		}
	}
	return 0, false
}
