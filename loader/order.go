package loader

import (
	"fmt"

	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
)

// Order is the order of one epoch's samples: a bijection from positions to
// dataset indices that takes no memory, whatever the number of samples. It does not
// change; any number of goroutines may read one. What Options.Exclude leaves out is in it,
// since nothing shifts: Loader.Which tells what is read in its place.
type Order struct {
	permutation permute.Permutation
	samples     int64
	shuffled    bool
}

// newOrder is the promise that data is the same on every machine: the order is a
// function of these arguments and of nothing else.
func newOrder(seed uint64, epoch int, samples int64, shuffled bool) Order {
	o := Order{samples: samples, shuffled: shuffled}
	if shuffled {
		o.permutation = permute.New(mix.Hash(seed, uint64(epoch)), uint64(samples))
	}
	return o
}

// Len is the number of samples in the epoch.
func (o *Order) Len() int64 { return o.samples }

// At is the dataset index at a position. Positions past the last begin again at the
// first, as padding does; a negative one panics.
func (o *Order) At(position int64) int {
	position = o.wrap(position)
	if !o.shuffled {
		return int(position)
	}
	return int(o.permutation.At(uint64(position)))
}

// wrap is the position within the epoch.
func (o *Order) wrap(position int64) int64 {
	if position < 0 || o.samples <= 0 {
		panic(fmt.Sprintf("loader: position %d in an Order of %d samples, want 0 or more", position, o.samples))
	}
	return position % o.samples
}

// Fill writes At(from), At(from+1) and so on to dst, several times faster than
// as many calls of At.
func (o *Order) Fill(dst []int, from int64) {
	for len(dst) > 0 {
		from = o.wrap(from)
		n := min(int64(len(dst)), o.samples-from)
		if o.shuffled {
			o.permutation.Fill(dst[:n], uint64(from))
		} else {
			for i := range dst[:n] {
				dst[i] = int(from) + i
			}
		}
		dst, from = dst[n:], from+n
	}
}
