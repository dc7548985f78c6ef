package compose

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Weighted has n samples of ds, drawn with replacement: each time sample i with a
// probability proportional to weights[i]. What is drawn is a function of the seed, the
// epoch and the place. A sample of weight 0 never comes. It takes 12 bytes a sample of ds.
func Weighted(ds loader.Dataset, weights []float64, n int, seed uint64) (loader.Dataset, error) {
	p, err := newPart("Weighted: ds", ds)
	if err == nil {
		err = checkWeights(p.length, weights)
	}
	if err := errors.Join(err, atLeast(0, "Weighted: n", n), atMost(maxLen, "Weighted: n", n)); err != nil {
		return nil, err
	}
	of := mix.Hash(uint64(len(weights)))
	for _, w := range weights {
		of = mix.Word(of ^ math.Float64bits(w) + 1)
	}
	return chosenByPass(kindWeighted, p, n, newDraws(mix.Hash(seed, uint64(kindWeighted)), weights), seed, uint64(n), of), nil
}

// checkWeights names the first weight that can't be.
func checkWeights(samples int, weights []float64) error {
	if len(weights) != samples {
		return mistake("Weighted: weights", fmt.Sprintf("%d weights", len(weights)), fmt.Sprintf("%d, one for each sample of ds", samples))
	}
	sum := 0.0
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return mistake(fmt.Sprintf("Weighted: weights[%d]", i), w, "0 or more, and finite")
		}
		sum += w
	}
	if sum == 0 || math.IsInf(sum, 1) {
		return mistake("Weighted: weights", fmt.Sprintf("%d weights with the sum %v", len(weights), sum), "a finite sum above 0")
	}
	return nil
}

// draws is Walker's alias table (1977) as Vose fills it (1991): a draw takes one of n
// equally probable boxes, and in it one of two samples by a coin. So it takes the same
// time for any weights.
type draws struct {
	key   uint64
	coins []uint64 // the box's own sample is taken if the coin is below
	other *list    // else this one
}

func newDraws(key uint64, weights []float64) *draws {
	n := len(weights)
	d := &draws{key: key, coins: make([]uint64, n), other: newList(n, n)}
	sum, heaviest := 0.0, 0
	for i, w := range weights {
		sum += w
		if w > weights[heaviest] {
			heaviest = i
		}
		d.other.add(heaviest)
	}
	left := make([]float64, n) // of each sample's probability, in boxes
	var small, large []int
	for i, w := range weights {
		left[i] = w / sum * float64(n)
		if left[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		box, giver := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		d.coins[box] = coin(left[box])
		d.other.set(box, giver)
		left[giver] -= 1 - left[box]
		if left[giver] < 1 {
			large = large[:len(large)-1]
			small = append(small, giver)
		}
	}
	for _, box := range large {
		d.coins[box] = math.MaxUint64
		d.other.set(box, box)
	}
	for _, box := range small { // by rounding: what it lacks, all of a weight of 0, is another's
		d.coins[box] = coin(left[box])
		d.other.set(box, heaviest)
	}
	return d
}

// coin is a probability below 1 as a part of 2⁶⁴.
func coin(probability float64) uint64 { return uint64(max(probability, 0) * (1 << 63) * 2) }

func (d *draws) choose(_ *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	h := mix.Hash(d.key, pass, uint64(index))
	box, _ := bits.Mul64(h, uint64(len(d.coins)))
	if mix.Word(h+1) < d.coins[box] {
		return 0, int(box), pass
	}
	return 0, d.other.get(int(box)), pass
}
