package loader

import (
	"context"
	"fmt"
	"iter"
)

// readAhead is how many samples are read beyond those that a Run has taken: handing
// over each by itself would cost a switch of goroutines.
const readAhead = 16

// pull ranges over the iterator.
func (p *onePass) pull() {
	p.goroutine.Store(goroutineID())
	returned := false
	defer close(p.ended)
	defer func() {
		if returned {
			return
		}
		if err := caught(recover()); !p.put(nil, err) {
			p.fail(fmt.Errorf("loader: %s: %w", StageIterate, err)) // in its clean-up
		}
	}()
	for encoder, err := range p.seq {
		if !p.put(encoder, err) {
			break
		}
	}
	returned = true
}

// put keeps what the iterator gave, and waits until there is room for more. It
// reports false when the source is closed.
func (p *onePass) put(encoder Encoder, err error) bool {
	p.mu.Lock()
	if p.closed != "" {
		p.dispose(encoder, p.unkept)
		p.mu.Unlock()
		return false
	}
	if err == Flush {
		if n := len(p.kept); n > 0 { // else all is delivered
			p.kept[n-1].flush = true
		}
		p.mu.Unlock()
		wake(p.more)
		return true
	}
	p.kept = append(p.kept, p.item(encoder, err))
	p.gave = true
	full := len(p.kept)-p.taken >= readAhead
	p.mu.Unlock()
	wake(p.more)
	for full {
		select {
		case <-p.room:
		case <-p.stop:
			return false
		}
		p.mu.Lock()
		full = len(p.kept)-p.taken >= readAhead
		p.mu.Unlock()
	}
	return true
}

// samples is what the source has from where it stands, for the run that has begun to
// read it.
func (p *onePass) samples(ctx context.Context) iter.Seq2[Encoder, error] {
	return func(yield func(Encoder, error) bool) {
		for {
			it, ok := p.take(ctx)
			switch {
			case !ok:
				return
			case it == nil:
				if !yield(nil, Flush) {
					return
				}
			case it.broken != nil:
				yield(nil, it.broken)
				return
			case !yield(it, nil):
				return
			}
		}
	}
}

// take waits for the next sample, or for a flush behind the last, which is nil. It reports
// false at the end of the source, and when ctx is done.
func (p *onePass) take(ctx context.Context) (*item, bool) {
	for ended := false; ; {
		p.mu.Lock()
		if p.taken > 0 && p.kept[p.taken-1].flush && !p.flushed {
			p.flushed = true
			p.mu.Unlock()
			return nil, true
		}
		if p.taken < len(p.kept) {
			it := p.kept[p.taken]
			p.taken++
			p.flushed = false
			p.mu.Unlock()
			wake(p.room)
			return it, true
		}
		p.mu.Unlock()
		if ended {
			return nil, false
		}
		select {
		case <-p.more:
		case <-p.ended:
			ended = true // look once more
		case <-ctx.Done():
			return nil, false
		}
	}
}

// wake wakes whoever waits on c, now or next.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
