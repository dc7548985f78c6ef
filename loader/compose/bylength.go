package compose

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// ByLength has the samples of ds in an order in which those of a batch are of similar
// length, so that little is padded: each once, in another order and in other batches in
// every epoch. lengths has the length of each sample of ds, in any unit; batch is the number
// of samples in a step over all ranks.
//
// A batch is made of samples that are neighbours in the order of their lengths: drawn from
// a window of a fiftieth of all batches, at least 2 and at most 64. The batches come in
// random order. Samples that fill no batch come last; they are others in every epoch, so
// that Drop leaves none out for good. The order must be kept: with Options.Shuffle it is
// lost. It takes four bytes a sample.
func ByLength(ds loader.Dataset, lengths []int, batch int, seed uint64) (loader.Dataset, error) {
	p, err := newPart("ByLength: ds", ds)
	if err == nil && len(lengths) != p.length {
		err = mistake("ByLength: lengths", fmt.Sprintf("%d lengths", len(lengths)), fmt.Sprintf("%d, one for each sample of ds", p.length))
	}
	if err := errors.Join(err, atLeast(1, "ByLength: batch", batch)); err != nil {
		return nil, err
	}
	return chosenByPass(kindByLength, p, p.length, newSimilar(mix.Hash(seed, uint64(kindByLength)), lengths, batch),
		seed, uint64(batch), hashInts(lengths)), nil
}

// similar is the order of a ByLength.
type similar struct {
	key      uint64
	byLength *list
	batch    int
	full     int         // batches
	window   int         // in batches
	batches  *shuffled   // which batch comes when
	windows  []*shuffled // which samples of a window are in which of its batches
	places   places[similarPlace]
}

// similarPlace is where a goroutine reads.
type similarPlace struct {
	known           bool // whether the next two are
	pass            uint64
	gap             int // of the pass
	batch           similarBatch
	batches, window run
}

// similarBatch is the batch at hand.
type similarBatch struct {
	lo, hi int // its samples
	window int
	first  int // of the window's samples, in the order by length
	from   int // the batch's first, in the window's order
}

func newSimilar(key uint64, lengths []int, batch int) *similar {
	s := &similar{key: key, byLength: sorted(lengths), batch: batch, full: len(lengths) / batch}
	s.window = min(max(s.full/50, 2), 64)
	s.batches = newShuffled(mix.Hash(key, 0), s.full)
	for from := 0; from < s.full; from += s.window {
		n := min(s.window, s.full-from) * batch
		s.windows = append(s.windows, newShuffled(mix.Hash(key, 1, uint64(from)), n))
	}
	return s
}

func (s *similar) choose(row *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	place := s.places.of(row)
	if !place.known || place.pass != pass {
		place.known, place.pass, place.gap = true, pass, s.gap(pass)
		place.batch = similarBatch{}
	}
	at = s.place(pass, index, place)
	s.places.done(row, place)
	return 0, s.byLength.get(at), pass
}

// place is where a sample is in the order by length.
func (s *similar) place(pass uint64, index int, p *similarPlace) int {
	if index >= s.full*s.batch {
		return p.gap + index - s.full*s.batch
	}
	if index < p.batch.lo || index >= p.batch.hi {
		p.batch = s.enter(pass, index/s.batch, &p.batches)
	}
	b := &p.batch
	at := b.first + s.windows[b.window].at(pass, b.from+index-b.lo, &p.window)
	if at >= p.gap {
		at += s.byLength.len() - s.full*s.batch
	}
	return at
}

// enter is the batch that has a number in the pass.
func (s *similar) enter(pass uint64, number int, r *run) similarBatch {
	batch := s.batches.at(pass, number, r)
	window := batch / s.window
	first := window * s.window
	return similarBatch{
		lo: number * s.batch, hi: (number + 1) * s.batch,
		window: window, first: first * s.batch, from: (batch - first) * s.batch,
	}
}

// gap is where the samples that fill no batch are taken out of the order by length.
func (s *similar) gap(pass uint64) int {
	gap, _ := bits.Mul64(mix.Hash(s.key, 2, pass), uint64(s.full*s.batch)+1)
	return int(gap)
}
