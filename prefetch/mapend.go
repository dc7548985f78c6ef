package prefetch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/slots"
)

// stop joins the stepper and takes back what is under way. What was submitted goes
// on; its results are discarded.
func (m *mapping) stop() {
	m.cancel()
	grace := m.p.ahead.grace()
	ticker := time.NewTicker(grace)
	defer ticker.Stop()
	for {
		select {
		case <-m.stepped:
			m.finish()
			return
		case <-ticker.C:
		}
		if err := m.visit.Stuck("the step", grace); err != nil {
			m.p.ahead.notes.keep(err)
			go func() { // ends when the step does
				<-m.stepped
				m.finish()
			}()
			return
		}
	}
}

// finish takes back what is under way, when the stepper has ended. Nobody else gets in
// before the ring is whole, or gone.
func (m *mapping) finish() {
	p := m.p
	p.ahead.notes.keep(m.reader.stop(m.failed))
	ctx, cancel := context.WithTimeout(context.Background(), p.ahead.closeTimeout())
	defer cancel()
	err := m.collect(ctx)
	if len(m.results.free) < len(m.results.all) || err != nil {
		m.drop(ctx)
	}
	p.ahead.life.must(life.EndRead)
	p.ahead.notes.keep(p.unuse())
}

// collect takes back the results whose downloads end, until the waiters have ended.
func (m *mapping) collect(ctx context.Context) error {
	for {
		select {
		case a, ok := <-m.arrived:
			if !ok {
				return nil
			}
			if a.err == nil { // else the results are given up
				m.results.free <- a.r
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drop gives up a ring that doesn't come back whole: a step failed half-way, or the
// device still works on it.
func (m *mapping) drop(ctx context.Context) {
	p, d := m.p, m.results
	p.results = nil
	free := func(ctx context.Context) error {
		if err := m.collect(ctx); err != nil { // the waiters use it yet
			return err
		}
		for _, s := range append(append([]*device.Stream(nil), p.stages.computes.Streams...), d.streams...) {
			if err := slots.Rest(ctx, s); err != nil {
				return err
			}
		}
		return d.release()
	}
	if err := free(ctx); err != nil {
		p.ahead.life.must(life.Use)
		done := make(chan struct{})
		p.ahead.mu.Lock()
		p.reapers = append(p.reapers, done)
		p.ahead.mu.Unlock()
		go func() { // the reaper: it ends when the device's work does
			err := free(context.Background())
			if err != nil { // Close tries again
				p.ahead.mu.Lock()
				p.unfreed = append(p.unfreed, d)
				p.ahead.mu.Unlock()
			}
			p.ahead.mu.Lock()
			p.reapers = slices.DeleteFunc(p.reapers, func(c chan struct{}) bool { return c == done })
			p.ahead.mu.Unlock()
			close(done)
			p.ahead.notes.keep(errors.Join(err, p.unuse()))
		}()
	}
}
