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

// Candidates yields the samples that Substitute tries in the place of one that cannot be
// read, in their order: of the loader's dataset, for a position of an epoch. It panics for
// samples without random access, and for negative numbers.
func (l *Loader) Candidates(epoch int, position int64) iter.Seq[int] {
	if !l.known || epoch < 0 || position < 0 {
		panic(fmt.Sprintf("loader: Candidates for position %d of epoch %d", position, epoch))
	}
	return func(yield func(int) bool) {
		for attempt := 1; attempt <= attempts; attempt++ {
			if !yield(l.candidate(epoch, position, attempt)) {
				return
			}
		}
	}
}

// candidate is the sample that is tried in an attempt, from 1.
func (l *Loader) candidate(epoch int, position int64, attempt int) int {
	h := mix.Hash(l.options.Seed, uint64(epoch), uint64(position), uint64(attempt), 2)
	index, _ := bits.Mul64(h, uint64(l.split.samples))
	return int(index)
}
