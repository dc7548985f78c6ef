package prefetch

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/internal/life"
)

// A lifecycle is where a Prefetcher stands in its life: package life has the states and
// says which event leads from one to which. Any goroutine may call it. A batch takes two
// events, so the state is one word and no lock.
type lifecycle struct{ word atomic.Uint64 }

// step is the only writer of the state. It returns the state behind e, or ErrBusy or
// ErrClosed if e comes at the wrong time. An event that can't happen is a mistake of this
// package, with which nothing can be relied on any more: it panics.
func (l *lifecycle) step(e life.PipelineEvent) (life.Pipeline, error) {
	for {
		word := l.word.Load()
		now := life.PipelineOf(word)
		next, err := now.Next(e)
		switch err {
		case nil:
			if l.word.CompareAndSwap(word, next.Word()) {
				return next, nil
			}
		case life.ErrBusy:
			return next, ErrBusy
		case life.ErrClosed:
			return next, ErrClosed
		default:
			panic(fmt.Sprintf("prefetch: %v while %+v", e, now))
		}
	}
}

// must is step for an event that no user brings about.
func (l *lifecycle) must(e life.PipelineEvent) life.Pipeline {
	now, err := l.step(e)
	if err != nil {
		panic(fmt.Sprintf("prefetch: %v: %v", e, err))
	}
	return now
}

func (l *lifecycle) state() life.Pipeline { return life.PipelineOf(l.word.Load()) }
