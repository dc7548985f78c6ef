package loader

import (
	"context"
	"fmt"
	"time"
)

// pending is a sample that waits until the ranks have agreed on its batch.
type pending struct {
	encoder Encoder
	place   rowPlace
}

// agreed fills batches where the ranks agree on each: its rows are together before it is
// opened. It reports whether the run goes on.
func (m *merger) agreed(ctx context.Context) bool {
	voting, end := m.voting(ctx)
	defer end()
	defer m.forget()
	for begun := false; ; begun = true {
		if !begun && !m.leap(ctx) || !m.ready(ctx) {
			m.withdraw(ctx, voting)
			return false
		}
		switch going, err := m.vote(ctx, voting); {
		case err != nil:
			if ctx.Err() == nil {
				failed := m.outcome(err)
				failed.Stage = StageAgree
				m.refuse(ctx, failed)
			}
			return false
		case !going:
			return true
		case !m.use(ctx):
			m.withdraw(ctx, voting)
			return false
		}
		if !m.close(ctx, false) {
			m.withdraw(ctx, voting)
			return false
		}
	}
}

// voting is the context of votes. Who has got the failure of a run closes it at once, and
// may not keep this rank's word from the others: so it ends some time behind ctx then.
func (m *merger) voting(ctx context.Context) (voting context.Context, end func()) {
	voting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if m.hasFailed() {
			time.AfterFunc(m.run.loader.options.GracePeriod/2, cancel)
		} else {
			cancel()
		}
	})
	return voting, func() {
		stop()
		cancel()
	}
}

// ready gathers the samples of a batch. It reports false if the run has failed or is over.
func (m *merger) ready(ctx context.Context) bool {
	failed, ok := m.gather(ctx)
	if !ok {
		return false
	}
	if failed != nil {
		if len(m.pending) == 0 || m.use(ctx) { // an earlier row may fail too
			m.refuse(ctx, failed)
		}
		return false
	}
	return !m.hasFailed()
}

// withdraw tells the other ranks that this one's run has failed, if it has. What it waits for
// is their next step.
func (m *merger) withdraw(ctx, voting context.Context) {
	if failed := m.cause(); failed != nil {
		_, _, _ = m.ask(ctx, voting, -1, failed)
	}
}

// gather takes the samples of a batch, as many as there are. It reports false when ctx is
// done.
func (m *merger) gather(ctx context.Context) (failed *Error, ok bool) {
	for size := m.size(); len(m.pending) < size; {
		s, ok := m.next(ctx)
		e := &m.entry
		switch {
		case !ok:
			return nil, false
		case s == nil:
			return nil, true
		case e.kind == aFailure:
			return m.failure(s, e.err), true
		case e.kind == aFlush:
			return m.failure(s, m.flush()), true
		}
		at := position(s.taken.given-1, s.number, m.run.loader.shards)
		m.pending = append(m.pending, pending{e.encoder, rowPlace{epoch: e.pass, position: at}})
	}
	return nil, true
}

// use opens a batch of what was gathered.
func (m *merger) use(ctx context.Context) bool {
	at := m.after().Position
	if len(m.pending) > 0 {
		at = m.pending[0].place.position
	}
	if !m.startAt(ctx, at) {
		return false
	}
	for _, p := range m.pending {
		m.batch.places[m.rows] = p.place
		m.add(p.encoder)
	}
	clear(m.pending)
	m.pending = m.pending[:0]
	return true
}

// forget ends the samples that were gathered for a batch which there will not be.
func (m *merger) forget() {
	for _, p := range m.pending {
		m.run.disposal.add(p.encoder, m.begin.Epoch, m.number(), p.place.position)
	}
	clear(m.pending)
	m.pending = m.pending[:0]
}

// vote has the ranks agree on the next step. It reports whether they make it.
func (m *merger) vote(ctx, voting context.Context) (going bool, err error) {
	l := m.run.loader
	rows, batch := len(m.pending), m.size()
	least, most, err := m.ask(ctx, voting, rows, nil)
	first := m.first()
	switch {
	case err != nil:
		return false, err
	case least == -1 && most <= l.layout.batch:
		return false, ErrRankFailed
	case least < 0 || least > rows || most < rows || most > l.layout.batch: // one that has ended knows no size
		return false, fmt.Errorf("Agree returned a least of %d and a most of %d, where this rank has %d of at most %d", least, most, rows, l.layout.batch)
	case first && most == 0:
		return false, m.none()
	case l.options.Last != Drop:
		return most > 0, nil
	case first && least < batch:
		return false, fmt.Errorf("%w: one of the ranks has %d, each takes %d", ErrTooFewSamples, least, batch)
	}
	return least == batch, nil
}

// ask calls Options.Agree. A panic there is an error, and runtime.Goexit is made the run's
// failure at once: nothing is returned then.
func (m *merger) ask(ctx, voting context.Context, rows int, failed error) (least, most int, err error) {
	m.epoch.Store(int64(m.begin.Epoch))
	m.position.Store(m.after().Position)
	m.agreeing.Store(m.sinceStart())
	returned := false
	defer func() {
		m.agreeing.Store(0)
		if returned {
			return
		}
		if err = caught(recover()); isExit(err) {
			failed := m.outcome(err)
			failed.Stage = StageAgree
			m.refuse(ctx, failed)
		}
	}()
	least, most, err = m.run.loader.options.Agree(voting, rows, failed)
	returned = true
	return least, most, err
}
