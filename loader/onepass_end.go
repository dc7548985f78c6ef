package loader

import (
	"errors"
	"slices"
	"time"
)

// returned is what Next has returned: an error, or all before a cursor. Where nobody
// has claimed the source, it is delivered.
func (p *onePass) returned(before Cursor, err error) {
	p.mu.Lock()
	claimed := p.claimed
	p.mu.Unlock()
	if claimed {
		return
	}
	p.delivered(before)
	if err != nil {
		p.told(err)
	}
}

// told ends the sample whose failure is err. No other error does: one of the user's may
// wrap another Run's failure, at any position.
func (p *onePass) told(err error) {
	var failure *Error
	if errors.As(err, &failure) && failure.of.item != nil {
		p.failed(failure.of)
	}
}

// delivered ends the samples before a cursor.
func (p *onePass) delivered(before Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(min(max(before.Position-p.at, 0), int64(len(p.kept))))
	if before.Epoch > 0 {
		n, p.over = len(p.kept), true
	}
	p.remove(0, n)
	p.at += int64(n)
}

// failed ends the sample whose failure was reported. Those behind it move up.
func (p *onePass) failed(of ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.kept, of.item); i >= 0 && of.item.lap == of.lap {
		p.remove(i, i+1)
	}
}

// broken names what was taken last, if that is an error of the iterator's.
func (p *onePass) broken() ticket {
	if p == nil {
		return ticket{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == 0 || p.kept[p.taken-1].broken == nil {
		return ticket{}
	}
	return p.kept[p.taken-1].ticket()
}

// remove takes items out of kept, ends their samples and uses them again.
func (p *onePass) remove(lo, hi int) {
	for i, it := range p.kept[lo:hi] {
		if it.busy.Load() {
			continue
		}
		switch {
		case it.saved && it.sample != nil:
			it.sample.drop()
		case it.sample != nil:
			p.dispose(it.sample, p.at+int64(lo+i))
		}
		it.reset()
		p.free = append(p.free, it)
	}
	p.kept = slices.Delete(p.kept, lo, hi)
	p.taken = max(min(p.taken, lo), p.taken-(hi-lo))
}

// dispose ends the sample at a position, which no Run takes any more.
func (p *onePass) dispose(sample any, position int64) {
	p.disposal.add(sample, 0, p.number(position), position)
}

// close ends the source: what is kept is for nobody, and the iterator is to end. It
// waits for that, and for the Close of what was kept, no longer than grace.
func (p *onePass) close(grace time.Duration) error {
	p.mu.Lock()
	if p.closed != "" {
		p.mu.Unlock()
		return nil
	}
	p.closed = reasonClosed
	p.unkept = p.at + int64(len(p.kept))
	p.remove(0, len(p.kept))
	pulling := p.pulling
	p.mu.Unlock()
	close(p.stop)
	stuck := error(nil)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	if pulling {
		select {
		case <-p.ended:
		case <-timer.C:
			timer.Reset(0) // for what follows too
			stuck = p.pullsAt().stuck(grace)
		}
	}
	select {
	case <-p.disposal.atRest():
	case <-timer.C:
		if s, ok := p.disposal.suspect(); ok {
			stuck = errors.Join(stuck, s.stuck(grace))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(stuck, p.failure)
}

// pullsAt is pull, inside the iterator of a source that is closed.
func (p *onePass) pullsAt() suspect {
	p.mu.Lock()
	defer p.mu.Unlock()
	return suspect{
		number: p.number(p.unkept), sample: int(p.unkept), position: p.unkept,
		stage: StageIterate, goroutine: p.goroutine.Load(),
	}
}

// number is that of the batch which a position is in.
func (p *onePass) number(position int64) int { return int(position / max(p.global, 1)) }

// fail keeps what went wrong where no Run can tell it.
func (p *onePass) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}
