package compose

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Balanced has the samples of ds so that all classes come equally often: the classes take
// turns, in the order of their labels, and each gives one of its samples. labels has the
// class of each sample of ds. An epoch has each sample of the largest class once, and those
// of smaller ones several times; Take leaves less of it. A class is gone through pass by
// pass, each in another order, so that its samples come equally often too.
func Balanced(ds loader.Dataset, labels []int, seed uint64) (loader.Dataset, error) {
	p, err := newPart("Balanced: ds", ds)
	if err != nil {
		return nil, err
	}
	if len(labels) != p.length {
		return nil, mistake("Balanced: labels", fmt.Sprintf("%d labels", len(labels)), fmt.Sprintf("%d, one for each sample of ds", p.length))
	}
	b := newBalance(labels)
	if len(b.classes) == 0 {
		return chosen(kindBalanced, p, 0, b, seed), nil
	}
	largest := 0
	for _, c := range b.classes {
		largest = max(largest, c.length)
	}
	if largest > maxLen/len(b.classes) {
		return nil, mistake("Balanced: labels", fmt.Sprintf("%d classes, the largest of %d samples", len(b.classes), largest),
			fmt.Sprintf("at most %d samples in the epoch", int64(maxLen)))
	}
	for i := range b.classes {
		c := &b.classes[i]
		c.passes = uint64((largest + c.length - 1) / c.length)
		c.order = newShuffled(mix.Hash(seed, uint64(kindBalanced), uint64(i)), c.length)
	}
	return chosenByPass(kindBalanced, p, largest*len(b.classes), b, seed, hashInts(labels)), nil
}

// balance is the samples by class.
type balance struct {
	members *list // class by class
	classes []class
	places  places[balancePlace]
}

// balancePlace is where a goroutine reads.
type balancePlace struct {
	next         int  // sample, and
	turn, number int  // its turn and class: to divide takes as long as all else here
	runs         runs // of the classes' orders
}

// class is a part of the members.
type class struct {
	from, length int
	passes       uint64 // in an epoch
	order        *shuffled
}

func newBalance(labels []int) *balance {
	byLabel := sorted(labels)
	b := &balance{members: byLabel}
	for at := range labels {
		if at == 0 || labels[byLabel.get(at)] != labels[byLabel.get(at-1)] {
			b.classes = append(b.classes, class{from: at})
		}
		b.classes[len(b.classes)-1].length++
	}
	return b
}

// sorted are the indices of numbers in the order of the numbers, equal ones in their own.
func sorted(numbers []int) *list {
	l := newList(len(numbers), len(numbers))
	for i := range numbers {
		l.add(i)
	}
	if l.narrow != nil {
		slices.SortStableFunc(l.narrow, func(a, b uint32) int { return cmp.Compare(numbers[a], numbers[b]) })
	} else {
		slices.SortStableFunc(l.wide, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	}
	return l
}

func (b *balance) choose(row *loader.Row, pass uint64, index int) (part, at int, partPass uint64) {
	p := b.places.of(row)
	if index != p.next {
		p.turn = index / len(b.classes)
		p.number = index - p.turn*len(b.classes)
	}
	turn, number := p.turn, p.number
	p.next = index + 1
	if p.number++; p.number == len(b.classes) {
		p.turn, p.number = p.turn+1, 0
	}
	c, time := &b.classes[number], 0
	if turn >= c.length {
		time = turn / c.length
	}
	at = c.order.at(pass*c.passes+uint64(time), turn-time*c.length, p.runs.of(number, len(b.classes)))
	b.places.done(row, p)
	return 0, b.members.get(c.from + at), pass
}
