package measure

import (
	"context"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
)

// A Stopwatch times work on one stream by two events around it. It is for one
// goroutine.
type Stopwatch struct {
	stream     *device.Stream
	start, end *device.Event
}

// NewStopwatch makes a stopwatch whose events r owns; r.Err tells of a failure.
func NewStopwatch(r *rig.Rig, s *device.Stream) Stopwatch {
	return Stopwatch{stream: s, start: r.Event("start"), end: r.Event("end")}
}

// Time is how long the device takes for what submit submits. The stream is idle
// before and when it returns.
func (w Stopwatch) Time(ctx context.Context, submit func() error) (time.Duration, error) {
	if err := w.stream.Record(w.start); err != nil {
		return 0, err
	}
	if err := submit(); err != nil {
		return 0, err
	}
	if err := w.stream.Record(w.end); err != nil {
		return 0, err
	}
	if err := w.end.Synchronize(ctx); err != nil {
		return 0, err
	}
	return device.Elapsed(w.start, w.end)
}

// Median is the median of Time over so many runs, after one that warms up.
func (w Stopwatch) Median(ctx context.Context, runs int, submit func() error) (time.Duration, error) {
	if _, err := w.Time(ctx, submit); err != nil {
		return 0, err
	}
	took := make([]time.Duration, 0, runs)
	for range runs {
		d, err := w.Time(ctx, submit)
		if err != nil {
			return 0, err
		}
		took = append(took, d)
	}
	return Median(took), nil
}
