package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// live is what the line of progress says of the pipeline: of the last half second.
type live struct {
	last *observe.Snapshot
	text string
}

// line is the text, looked at anew if it is older than half a second.
func (l *live) line(pf *prefetch.Prefetcher) string {
	if l.last != nil && time.Since(l.last.Taken) < time.Second/2 {
		return l.text
	}
	now := observe.Take(pf)
	if l.last != nil {
		s := now.Sub(l.last)
		l.text = fmt.Sprintf(", %.0f samples/s, %.0f%% ready, bottleneck: %s", s.SamplesPerSecond(), 100*s.Readiness(), s.Explain().Bottleneck)
	}
	l.last = now
	return l.text
}

// report is the closing report: who waited for whom, and what to change.
func (t *training) report(ctx context.Context, c config) error {
	s := observe.Take(t.pf)
	fmt.Printf("\n%s\n%s", s, s.Explain())
	if c.ceiling {
		step, err := t.ceiling(ctx, c)
		if err != nil {
			return err
		}
		fmt.Println(s.Against(step))
	}
	if c.trace == "" {
		return nil
	}
	return t.writeTimeline(c.trace, s)
}

// ceiling is how long a step takes that gets the same few batches again and again.
func (t *training) ceiling(ctx context.Context, c config) (step time.Duration, err error) {
	ld, err := loader.New(t.data, c.batchSize, c.loader)
	if err != nil {
		return 0, err
	}
	replay, err := loader.Replay(ctx, ld, 8)
	if err != nil {
		return 0, err
	}
	c.prefetch.Transform, c.prefetch.Recorder = t.transform, nil
	pf, err := prefetch.New(t.compute, replay, c.prefetch)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, pf.Close()) }()
	steps := min(200, t.batches/2) // the network keeps a loss of each
	return observe.Ceiling(ctx, pf, steps, func(batch prefetch.Batch) error {
		return t.net.Step(batch.Stream(), batch.Field("image").View, batch.Field("label").View, batch.Len())
	})
}

// writeTimeline writes what is kept of the last steps.
func (t *training) writeTimeline(name string, s *observe.Snapshot) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	tl := t.record.Timeline(s.Title())
	tl.Notes = append(tl.Notes, s.Explain().String())
	return tl.WriteJSON(file)
}
