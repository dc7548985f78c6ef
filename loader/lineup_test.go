package loader

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Far more batches than the lineup has room for, in a few slots, their rows handed over in
// parts and sometimes given back: each row is claimed by one worker, and the consumer, which
// waits for them in order, finds every batch filled.
func TestEachRowIsClaimedOnce(t *testing.T) {
	const batches, slots, workers = 5 * lookAhead, 7, 4
	for _, rows := range []int{1, 3, 64} {
		r := &Run{loader: &Loader{layout: &Layout{batch: rows}}}
		r.inspector.init(r)
		r.lineup.init(workers, workers, &r.inspector, func() {})
		r.arrivals.bell = make(chan struct{}, 1)
		order := make(chan *batch, slots)
		free := make(chan *batch, slots)
		claimed := make(map[*batch][]atomic.Int64)
		for range slots {
			b := new(batch)
			claimed[b] = make([]atomic.Int64, rows)
			free <- b
		}
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				turn := 0
				for {
					b, s := r.lineup.claim(1 + (turn+w)%5)
					if b == nil {
						return
					}
					if turn++; turn%3 == 0 && s.hi-s.lo > 1 {
						r.lineup.giveBack(b, span{s.lo + 1, s.hi})
						s.hi = s.lo + 1
					}
					for row := s.lo; row < s.hi; row++ {
						claimed[b][row].Add(1)
					}
					b.release(r, s.hi-s.lo)
				}
			})
		}
		all.Go(func() {
			for number := range int64(batches) {
				b := <-free
				b.begin(r, Slot{}, number, Filled{})
				order <- b
				switch number % 4 {
				case 0: // in two parts, and then the word that these were all
					r.lineup.hand(b, rows/2, false)
					r.lineup.hand(b, rows-rows/2, false)
					r.lineup.hand(b, 0, true)
				case 1: // none at all
					r.lineup.hand(b, 0, true)
					b.release(r, rows)
				default:
					r.lineup.hand(b, rows, true)
				}
				b.release(r, 1)
				r.lineup.hold(2 * rows)
			}
			r.lineup.end()
		})
		for number := range int64(batches) {
			b := <-order
			for !r.arrivals.await(b) {
				<-r.arrivals.bell
			}
			for row := range claimed[b] {
				want := int64(1)
				if number%4 == 1 {
					want = 0
				}
				require.Equal(t, want, claimed[b][row].Swap(0), "row %d of batch %d", row, number)
			}
			r.arrivals.remove(b)
			free <- b
		}
		all.Wait()
		require.Nil(t, r.arrivals.first)
		require.EqualValues(t, batches, r.lineup.front.Load())
	}
}
