package fuzz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-go/leat/loader"
)

// TestLoader runs random programs of a loader's Runs.
func TestLoader(t *testing.T) { drive(t, drawLoaderProgram, runLoader) }

func runLoader(p loaderProgram) error {
	r := &loading{program: p, words: new(words), turn: make(chan struct{}, 1)}
	err := r.start(p.Options, p.Slots, loader.Cursor{Epoch: p.StartAt, Position: p.Start})
	if errors.Is(err, loader.ErrTooFewSamples) && int64(p.Data.Samples) < p.Options.global() {
		return nil // as it should be
	}
	if err != nil {
		return err
	}
	for i, s := range p.Steps {
		if err := r.step(s); err != nil {
			_ = r.run.Close()
			time.Sleep(p.Data.longest() + 1)
			return fmt.Errorf("step %d, %v: %w", i+1, s, err)
		}
	}
	if err := r.close(); err != nil {
		return fmt.Errorf("the last Close: %w", err)
	}
	time.Sleep(p.Data.longest() + 1) // calls that did not heed their context return
	return errors.Join(r.src.accusation(), r.mem.account(len(r.held), 0))
}

// loading is a program under way.
type loading struct {
	program loaderProgram
	words   *words

	src    *source
	ld     *loader.Loader
	mem    *ledger
	run    *loader.Run
	ref    *reference
	cancel context.CancelCauseFunc

	slots     int
	held      []loader.Filled
	final     error // what Next returns for ever
	ending    atomic.Bool
	ended     atomic.Bool
	beside    sync.WaitGroup
	turn      chan struct{}
	closed    chan error // of Closes beside
	delivered loader.Stats
}

var errCancel = errors.New("the run's context is cancelled")

// start begins a run with a loader and memory of its own.
func (r *loading) start(o options, slots int, at loader.Cursor) error {
	src := &source{data: r.program.Data, workers: o.Workers}
	ld, err := src.loader(o)
	if err != nil {
		return err
	}
	mem, err := newLedger(ld.Layout().Size(), slots, r.program.GetsFail)
	if err != nil {
		return err
	}
	r.src, r.ld, r.mem, r.slots = src, ld, mem, slots
	at = normalized(ld, at)
	ref := newReference(r.program.Data, ld, o.BatchSize, at, r.words)
	if r.ref != nil && r.ref.options.Seed == o.Seed {
		ref.standIn = r.ref.standIn
	}
	r.ref = ref
	r.held, r.final, r.delivered, r.closed = nil, nil, loader.Stats{}, make(chan error, 100)
	r.ending.Store(false)
	r.ended.Store(false)
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	r.run = ld.Start(ctx, at, mem)
	return nil
}

func (r *loading) step(s loaderStep) error {
	switch s.Do {
	case "take":
		for range s.Times {
			if err := r.take(s.For, s.Lazily); err != nil {
				return err
			}
			if r.final == nil && len(r.held) > 0 {
				r.give(len(r.held) - 1)
			}
		}
	case "hold":
		return r.take(s.For, s.Lazily)
	case "give":
		if len(r.held) > 0 {
			r.give(int(s.For/time.Millisecond) % len(r.held))
		}
	case "sleep":
		time.Sleep(s.For)
	case "state":
		return r.state()
	case "stats beside":
		r.aside(s.For, func() { _ = r.run.Stats() })
	case "restart":
		if err := r.close(); err != nil {
			return err
		}
		err := r.start(s.Options, s.Slots, r.ref.at)
		if errors.Is(err, loader.ErrTooFewSamples) && int64(r.program.Data.Samples) < s.Options.global() {
			return r.start(r.program.Options, s.Slots, r.ref.at)
		}
		return err
	case "cancel":
		r.end(func() { r.cancel(errCancel) })
	case "close":
		r.end(func() { r.closed <- r.closeRun() })
	case "cancel beside":
		r.aside(s.For, func() { r.end(func() { r.cancel(errCancel) }) })
	case "close beside":
		r.aside(s.For, func() { r.end(func() { r.closed <- r.closeRun() }) })
	case "take nothing":
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errLimit)
		if f, err := r.run.Next(ctx); err == nil {
			return fmt.Errorf("batch %d is given to a context that is done", f.Batch)
		}
	}
	return nil
}

// aside does something on another goroutine, after a while.
func (r *loading) aside(after time.Duration, f func()) {
	r.beside.Go(func() {
		time.Sleep(after)
		f()
	})
}

// end ends the run, in between of its two marks.
func (r *loading) end(f func()) {
	r.ending.Store(true)
	f()
	r.ended.Store(true)
}

func (r *loading) give(i int) {
	r.mem.give(r.held[i].Slot)
	r.held = append(r.held[:i], r.held[i+1:]...)
}

// state goes through what a program would save.
func (r *loading) state() error {
	var st loader.State
	text, err := json.Marshal(r.ld.StateAt(r.ref.at))
	if err == nil {
		err = json.Unmarshal(text, &st)
	}
	if err != nil {
		return err
	}
	want := normalized(r.ld, r.ref.at)
	if err = r.ld.Check(st); pastTheEnd(r.ref.options, want) {
		return nowhere(err, want)
	}
	if err != nil {
		return err
	}
	if r.ref.options.Shard.Count > 1 {
		want.Substituted = 0 // each rank has its own, and a state is the same on all
	}
	if is := st.Cursor(); is != want {
		return fmt.Errorf("the state is %+v, want %+v", is, want)
	}
	return nil
}

// real is false: two Closes at once take turns where that might stop the clock.
func (p loaderProgram) real() bool { return false }
