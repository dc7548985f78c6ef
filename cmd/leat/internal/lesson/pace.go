package lesson

import "time"

// A pace is how fast the card's clock runs against the machine's: times on the
// card multiplied by slower and divided by faster are the model's. The model runs
// in real time, and neither microseconds nor hours can be watched.
type pace struct{ slower, faster time.Duration }

// The time that the longest run is to take.
const (
	shortest = 50 * time.Millisecond
	longest  = 2 * time.Second
)

// newPace is the pace, by powers of ten, for a longest run of total on the card.
// The times are those of the model, which must stay whole: what isn't divisible is
// not run faster.
func newPace(total time.Duration, times ...time.Duration) pace {
	p := pace{slower: 1, faster: 1}
	for total*p.slower < shortest {
		p.slower *= 10
	}
	for total/p.faster > longest && divisible(times, 10*p.faster) {
		p.faster *= 10
	}
	return p
}

func divisible(times []time.Duration, by time.Duration) bool {
	for _, t := range times {
		if t%by != 0 {
			return false
		}
	}
	return true
}

// model is the model's time for one of the card's, card the reverse.
func (p pace) model(card time.Duration) time.Duration { return card * p.slower / p.faster }
func (p pace) card(model time.Duration) time.Duration { return model / p.slower * p.faster }
