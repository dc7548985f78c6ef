package fuzz

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leat-go/leat/loader"
)

// ledger is a loader.Memory that knows where each slot is. What comes back is
// overwritten, so that nothing is right that was not written again.
type ledger struct {
	heap      *loader.Heap
	failAfter int // Gets, until one fails; 0 is never

	mu          sync.Mutex
	gets        int
	failed      bool
	out         map[int]bool // slots that are neither free nor quarantined
	delivered   map[int]bool // of them, those in the consumer's hands
	quarantined map[int]bool
	wrong       error
}

var errMemory = errors.New("no memory today")

func newLedger(bytes int64, slots, failAfter int) (*ledger, error) {
	heap, err := loader.NewHeap(bytes, slots)
	return &ledger{heap: heap, failAfter: failAfter, out: make(map[int]bool), delivered: make(map[int]bool), quarantined: make(map[int]bool)}, err
}

func (l *ledger) Get(ctx context.Context) (loader.Slot, error) {
	l.mu.Lock()
	l.gets++
	fail := l.gets == l.failAfter
	l.failed = l.failed || fail
	l.mu.Unlock()
	if fail {
		return loader.Slot{}, errMemory
	}
	s, err := l.heap.Get(ctx)
	if err != nil {
		return s, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out[s.ID] {
		l.wrong = fmt.Errorf("slot %d is handed out twice", s.ID)
	}
	l.out[s.ID] = true
	return s, nil
}

func (l *ledger) Put(s loader.Slot) {
	l.mu.Lock()
	if !l.out[s.ID] && !l.quarantined[s.ID] || l.delivered[s.ID] {
		l.wrong = fmt.Errorf("slot %d comes back from somebody who doesn't have it", s.ID)
	}
	delete(l.out, s.ID)
	delete(l.quarantined, s.ID)
	for i := range s.Bytes {
		s.Bytes[i] = 0xee
	}
	l.mu.Unlock()
	l.heap.Put(s)
}

func (l *ledger) Quarantine(s loader.Slot, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.out[s.ID] || l.delivered[s.ID] {
		l.wrong = fmt.Errorf("slot %d is quarantined by somebody who doesn't have it", s.ID)
	}
	if err == nil {
		l.wrong = fmt.Errorf("slot %d is quarantined without a reason", s.ID)
	}
	delete(l.out, s.ID)
	l.quarantined[s.ID] = true
	l.heap.Quarantine(s, err)
}

// deliver notes that the consumer has the slot, give that it gives it back.
func (l *ledger) deliver(s loader.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.out[s.ID] || l.delivered[s.ID] {
		l.wrong = fmt.Errorf("slot %d is delivered by somebody who doesn't have it", s.ID)
	}
	l.delivered[s.ID] = true
}

func (l *ledger) give(s loader.Slot) {
	l.mu.Lock()
	delete(l.delivered, s.ID)
	l.mu.Unlock()
	l.Put(s)
}

// account reports what is wrong once no run is under way: the consumer has held
// slots, nobody else any.
func (l *ledger) account(held, stuck int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.wrong != nil:
		return l.wrong
	case len(l.out) != held:
		return fmt.Errorf("%d slots are lost", len(l.out)-held)
	case len(l.quarantined) > stuck:
		return fmt.Errorf("%d slots are quarantined, for %d calls that did not return", len(l.quarantined), stuck)
	}
	return nil
}

// hasFailed is whether a Get has.
func (l *ledger) hasFailed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}
