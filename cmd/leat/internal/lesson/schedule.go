package lesson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-go/leat/device/cpu"
)

// A Way is how the host submits the batches.
type Way int

const (
	// Synchronous: the host waits for every call.
	Synchronous Way = iota
	// OneStream: the host submits everything to one stream and waits once.
	OneStream
	// SeveralStreams: the same, with the batches on several streams in turn.
	SeveralStreams
)

// A Schedule is what ran on the card in one way.
type Schedule struct {
	Way     Way
	Batches int
	// Spans are what the engines did, by time. They begin at 0.
	Spans []Span
	// Waits is how often the host waited for the card.
	Waits int
	// Late is how much later than at once the host woke up when it waited, which
	// the spans leave out: it says something of this machine and nothing of the
	// card.
	Late time.Duration
}

// A Span is an engine at work on a batch.
type Span struct {
	// Batch counts from 0.
	Batch int
	// Engine is "H2D", "compute" or "D2H", or "copy" where one engine serves both
	// directions.
	Engine     string
	Start, End time.Duration
}

// run runs batches on a card of its own.
func run(ctx context.Context, o Options, p pace, way Way, batches int) (s Schedule, err error) {
	streams := 1
	if way == SeveralStreams {
		streams = o.Depth
	}
	c, err := newCard(o, p, streams)
	if err != nil {
		return s, err
	}
	submit := c.ahead
	if way == Synchronous {
		submit = c.waiting
	}
	waits, err := submit(ctx, batches)
	if err := errors.Join(err, c.close()); err != nil {
		return s, err
	}
	s = Schedule{Way: way, Batches: batches, Waits: waits, Spans: c.batchSpans()}
	if way == Synchronous {
		s.Late = p.model(s.closeGaps())
	}
	return s, nil
}

func streamName(i int) string { return fmt.Sprintf("stream %d", i) }

// batchSpans are the spans in the card's time. A stream is a queue, so its n-th
// operation of a kind belongs to its n-th batch.
func (c *card) batchSpans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.spans, func(a, b cpu.Span) int { return cmp.Compare(a.Start, b.Start) })
	lane := make(map[string]int)
	for i := range c.lanes {
		lane[streamName(i)] = i
	}
	type operation struct{ stream, op string }
	seen := make(map[operation]int)
	var spans []Span
	for _, s := range c.spans {
		i, ok := lane[s.Stream]
		if !ok {
			continue // the gate's
		}
		of := operation{s.Stream, s.Op}
		spans = append(spans, Span{
			Batch:  i + seen[of]*len(c.lanes),
			Engine: s.Engine,
			Start:  c.pace.card(s.Start - c.begin()),
			End:    c.pace.card(s.End - c.begin()),
		})
		seen[of]++
	}
	return spans
}

// begin is when the first batch began, by the model's clock.
func (c *card) begin() time.Duration {
	for _, s := range c.spans {
		if s.Stream != "gate" {
			return s.Start
		}
	}
	return 0
}

// closeGaps moves spans that follow each other one by one together and returns the
// sum of the gaps.
func (s *Schedule) closeGaps() (sum time.Duration) {
	for i := range s.Spans {
		if i > 0 {
			sum += max(0, s.Spans[i].Start-sum-s.Spans[i-1].End)
		}
		s.Spans[i].Start -= sum
		s.Spans[i].End -= sum
	}
	return sum
}

// Total is the time from the first span's start to the last one's end.
func (s Schedule) Total() time.Duration {
	var total time.Duration
	for _, span := range s.Spans {
		total = max(total, span.End)
	}
	return total
}

// Cycle is the time from one batch's end to the next one's, on average over all
// but the first; with one batch it is the total.
func (s Schedule) Cycle() time.Duration {
	if s.Batches == 1 {
		return s.Total()
	}
	ends := make([]time.Duration, s.Batches)
	for _, span := range s.Spans {
		ends[span.Batch] = max(ends[span.Batch], span.End)
	}
	return (slices.Max(ends) - slices.Min(ends)) / time.Duration(s.Batches-1)
}

// Busy is how long an engine worked.
func (s Schedule) Busy(engine string) time.Duration {
	var busy time.Duration
	for _, span := range s.Spans {
		if span.Engine == engine {
			busy += span.End - span.Start
		}
	}
	return busy
}

// Bubble is the share of the total in which an engine had nothing to do.
func (s Schedule) Bubble(engine string) float64 {
	return 1 - float64(s.Busy(engine))/float64(s.Total())
}
