package loader

import (
	"cmp"
	"fmt"
)

// Span is what lies between two places: the steps that begin at From or behind it, and
// before To. The cursors of two States make one, and so does Loader.Span.
type Span struct {
	From, To Cursor
}

// String is the span for people.
func (s Span) String() string {
	return fmt.Sprintf("epoch %d, position %d to epoch %d, position %d",
		s.From.Epoch, s.From.Position, s.To.Epoch, s.To.Position)
}

// compare tells which of two places comes first: it is negative if c does.
func (c Cursor) compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.Epoch, d.Epoch), cmp.Compare(c.Position, d.Position))
}

// checkSpan reports what is wrong with a span's places.
func (l *Loader) checkSpan(s Span) error {
	for _, at := range [...]Cursor{s.From, s.To} {
		at.Substituted = 0
		if err := l.validate(at); err != nil {
			return err
		}
	}
	return l.checkPlaces(s)
}

// checkPlaces reports what is wrong with a span's places whatever the data has there.
func (l *Loader) checkPlaces(s Span) error {
	for _, at := range [...]Cursor{s.From, s.To} {
		if at.Epoch < 0 || at.Epoch > maxEpoch || !l.split.holds(at.Position) {
			return &StateError{Field: "Cursor", Got: at, Want: fmt.Sprintf("an epoch of 0 to %d and a position of 0 to %d", maxEpoch, l.split.samples)}
		}
	}
	if end := l.options.Epochs; end > 0 && s.To.compare(Cursor{Epoch: end}) > 0 {
		return &StateError{Field: "Cursor", Got: s.To, Want: fmt.Sprintf("a place in the %d epochs of Options.Epochs", end)}
	}
	if s.From.compare(s.To) > 0 {
		return &StateError{Field: "Cursor", Got: s.From, Want: fmt.Sprintf("a place before %v, where the span ends", s.To)}
	}
	return nil
}

// Span is the steps from, from+1 and so on before to, counted from 0 behind a state: if it
// was saved before step 1,200, the step 1,234 is Span(state, 34, 35). Nothing is read. The
// error is a *StateError if the state is not this loader's, or if the data has fewer
// steps, and an *OptionError for negative or interchanged numbers and for samples that
// have no random access.
func (l *Loader) Span(s State, from, to int) (Span, error) {
	if err := l.random("Span"); err != nil {
		return Span{}, err
	}
	if err := l.Check(s); err != nil {
		return Span{}, err
	}
	if from < 0 || to < from {
		return Span{}, &OptionError{Option: "Span", Value: fmt.Sprintf("steps %d to %d", from, to), Want: "steps of 0 or more, the first one first"}
	}
	begin, err := l.behind(s.Cursor(), int64(from))
	if err != nil {
		return Span{}, err
	}
	end, err := l.behind(begin, int64(to-from))
	return Span{begin, end}, err
}

// random is an *OptionError unless there is random access.
func (l *Loader) random(method string) error {
	if l.dataset != nil {
		return nil
	}
	return &OptionError{Option: method + ": ld", Value: "of samples without random access", Want: "a Dataset, whose order is known without reading"}
}

// behind is the place so many steps behind another one.
func (l *Loader) behind(at Cursor, steps int64) (Cursor, error) {
	at.Substituted = 0
	asked := steps
	for {
		to, n := l.split.advance(at, steps)
		if steps -= n; steps == 0 {
			return to, nil
		}
		at = Cursor{Epoch: at.Epoch + 1}
		if l.split.alike(at.Epoch) {
			each := l.split.left(at)
			at.Epoch += int(min(steps/each, maxEpoch))
			steps -= min(steps/each, maxEpoch) * each
		}
		if end := l.options.Epochs; at.Epoch > maxEpoch || end > 0 && (at.Epoch > end || at.Epoch == end && steps > 0) {
			return at, &StateError{Field: "Cursor", Got: fmt.Sprintf("%d steps behind epoch %d, position %d", asked, to.Epoch, to.Position),
				Want: "a place before the end of the data"}
		}
		if steps == 0 {
			return at, nil
		}
	}
}
