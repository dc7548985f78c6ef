package compose

import (
	"sync/atomic"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
)

// Shuffle has the samples of ds in an order that is a function of the seed, the pass and
// the length alone: another in each epoch, the same on every rank and machine. It takes no
// memory. Loader.Options.Shuffle does the same for a whole dataset; this one is for a part
// of a composition, such as one dataset of a Concat.
func Shuffle(ds loader.Dataset, seed uint64) (loader.Dataset, error) {
	p, err := newPart("Shuffle: ds", ds)
	if err != nil {
		return nil, err
	}
	s := &permuted{order: newShuffled(mix.Hash(seed, uint64(kindShuffle)), p.length)}
	return chosenByPass(kindShuffle, p, p.length, s, seed), nil
}

// permuted is the samples of a part in a random order.
type permuted struct {
	order *shuffled
	runs  places[run]
}

func (p *permuted) choose(row *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	r := p.runs.of(row)
	at = p.order.at(pass, index, r)
	p.runs.done(row, r)
	return 0, at, pass
}

// shuffled gives the numbers below n an order in each pass.
type shuffled struct {
	key uint64
	n   int
	// The orders of two passes, by their last bit: at the border of passes both are read.
	orders [2]atomic.Pointer[order]
}

// order is that of one pass.
type order struct {
	pass        uint64
	permutation permute.Permutation
	table       []uint8 // of all positions, if they are few
}

// run is a part of an order. Who reads one position after the other, and brings the run of
// the last, finds the next few worked out, which is several times faster than one by one.
// A run is for one goroutine.
type run struct {
	order   *order
	next    int // the position behind those known
	known   int // of numbers, those before next
	numbers [64]int
}

// few is up to how many positions are kept in a table.
const few = 256

func newShuffled(key uint64, n int) *shuffled { return &shuffled{key: key, n: n} }

// at is the number at a position of a pass.
func (s *shuffled) at(pass uint64, position int, r *run) int {
	o := s.orders[pass&1].Load()
	if o == nil || o.pass != pass {
		o = s.begin(pass)
	}
	if o.table != nil {
		return int(o.table[position])
	}
	return r.at(o, position)
}

// at works out several numbers at the second of two positions in a row.
func (r *run) at(o *order, position int) int {
	from := r.next - r.known
	switch {
	case r.order != o || position < from || position > r.next:
		r.order, r.next, r.known = o, position+1, 0
		return int(o.permutation.At(uint64(position)))
	case position == r.next:
		r.known = min(len(r.numbers), int(o.permutation.Len())-position)
		o.permutation.Fill(r.numbers[:r.known], uint64(position))
		r.next, from = position+r.known, position
	}
	return r.numbers[position-from]
}

// begin makes the order of a pass.
func (s *shuffled) begin(pass uint64) *order {
	o := &order{pass: pass, permutation: permute.New(mix.Hash(s.key, pass), uint64(s.n))}
	if s.n <= few {
		var numbers [few]int
		o.permutation.Fill(numbers[:s.n], 0)
		o.table = make([]uint8, s.n)
		for i, number := range numbers[:s.n] {
			o.table[i] = uint8(number)
		}
	}
	s.orders[pass&1].Store(o)
	return o
}

// runs are those of several orders, each made when it is needed.
type runs struct{ all []*run }

// of is the run of one of so many.
func (r *runs) of(i, orders int) *run {
	if r.all == nil {
		r.all = make([]*run, orders)
	}
	if r.all[i] == nil {
		r.all[i] = new(run)
	}
	return r.all[i]
}
