package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/observe/timeline"
)

// Timeline is what is kept of the last steps: what the workers, the slots, the engines and
// the loop did, and why they had nothing to do. The engines are there as far as uploads were
// timed: see prefetch.Options.Timing.
func (r *Recorder) Timeline(title string) *timeline.Timeline {
	r.mu.Lock()
	b := &builder{steps: r.steps.kept(), uploads: r.uploads.kept(), downloads: r.downloads.kept(), account: r.device}
	r.mu.Unlock()
	for i := range r.workers {
		w := &r.workers[i]
		w.mu.Lock()
		b.reads = append(b.reads, w.reads.kept()...)
		w.mu.Unlock()
	}
	return b.build(title)
}

// builder makes a Timeline.
type builder struct {
	steps     []journal.Step
	uploads   []journal.Upload
	downloads []journal.Download
	reads     []journal.Read
	account   deviceAccount // its clock

	began time.Time // of the Timeline
	t     timeline.Timeline
}

func (b *builder) build(title string) *timeline.Timeline {
	b.t.Title = title
	if len(b.steps) == 0 {
		return &b.t
	}
	b.began = b.steps[0].Called
	b.t.Length = b.steps[len(b.steps)-1].Ended.Sub(b.began)
	for _, u := range b.uploads { // the device goes on for a while
		if u.Finished >= 0 {
			b.t.Length = max(b.t.Length, b.account.at(&u, u.Finished).Sub(b.began))
		}
	}
	b.workers()
	b.hostSlots()
	b.engines()
	b.results()
	b.loop()
	// What began before the first step, as reading ahead did, is cut off there.
	return b.t.Cut(0, b.t.Length)
}

// span is a stretch of the host's time.
func (b *builder) span(k timeline.Kind, from, to time.Time) timeline.Span {
	return timeline.Span{Kind: k, From: from.Sub(b.began), To: to.Sub(b.began)}
}

// lanes adds lanes of a group, without spans of no time, in order.
func (b *builder) lanes(group string, byNumber map[int][]timeline.Span) {
	numbers := make([]int, 0, len(byNumber))
	for n := range byNumber {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		spans := slices.DeleteFunc(byNumber[n], func(s timeline.Span) bool { return s.To <= s.From })
		slices.SortStableFunc(spans, func(x, y timeline.Span) int { return cmp.Compare(x.From, y.From) })
		if len(spans) > 0 {
			b.t.Lanes = append(b.t.Lanes, timeline.Lane{Group: group, Number: n, Spans: spans})
		}
	}
}

func (b *builder) workers() {
	lanes := map[int][]timeline.Span{}
	for _, r := range b.reads {
		s := b.span(timeline.Reading, r.From, r.From.Add(r.Took))
		s.Epoch, s.Batch, s.Sample, s.Samples = r.Epoch, r.Batch, r.Sample, r.Samples
		lanes[r.Worker] = append(lanes[r.Worker], s)
	}
	b.lanes(timeline.Workers, lanes)
}

// hostSlots are from the moment at which a slot was opened until its batch was copied, as far
// as that was timed, or submitted, or else delivered.
func (b *builder) hostSlots() {
	copied := map[int64]*journal.Upload{}
	for i := range b.uploads {
		copied[b.uploads[i].Number] = &b.uploads[i]
	}
	lanes := map[int][]timeline.Span{}
	for i := range b.steps {
		s := &b.steps[i]
		if s.HostSlot < 0 {
			continue
		}
		started, ended := s.Sent, s.Sent
		if u := copied[s.Upload]; u != nil && s.Upload >= 0 {
			started, ended = b.account.at(u, u.Started), b.account.at(u, u.Copied)
		} else if !s.Staged {
			started, ended = s.Delivered, s.Delivered
		}
		add := func(k timeline.Kind, from, to time.Time) {
			at := b.span(k, from, to)
			at.Epoch, at.Batch = s.Epoch, s.Batch
			lanes[s.HostSlot] = append(lanes[s.HostSlot], at)
		}
		add(timeline.Filling, s.Opened, s.Filled)
		add(timeline.Filled, s.Filled, later(s.Filled, started))
		add(timeline.Copying, later(s.Filled, started), ended)
	}
	b.lanes(timeline.HostSlots, lanes)
}

// engines are the device's lanes.
func (b *builder) engines() {
	var copies, transform, compute []timeline.Span
	for i := range b.uploads {
		u := &b.uploads[i]
		first := b.first(u.Number)
		if first == nil {
			continue
		}
		on := func(k timeline.Kind, from, to time.Duration) timeline.Span {
			s := b.span(k, b.account.at(u, from), b.account.at(u, to))
			s.Epoch, s.Batch, s.Batches = first.Epoch, first.Batch, u.Batches
			return s
		}
		copies = append(copies, on(timeline.Copying, u.Started, u.Copied))
		transform = append(transform, on(timeline.Converting, u.Begun, u.Loaded))
		if u.Finished < 0 {
			continue
		}
		if i > 0 {
			compute = append(compute, b.gap(&b.uploads[i-1], u, first)...)
		}
		compute = append(compute, on(timeline.Computing, max(u.Reached, u.Loaded), u.Finished))
	}
	b.lanes(timeline.Copies, map[int][]timeline.Span{-1: copies})
	b.lanes(timeline.Transform, map[int][]timeline.Span{-1: transform})
	b.lanes(timeline.Compute, map[int][]timeline.Span{-1: compute})
}

// first is the first step of an upload, nil if it is not kept.
func (b *builder) first(upload int64) *journal.Step {
	i, ok := slices.BinarySearchFunc(b.steps, upload, func(s journal.Step, number int64) int { return cmp.Compare(s.Upload, number) })
	if !ok {
		return nil
	}
	for i > 0 && b.steps[i-1].Upload == upload {
		i--
	}
	return &b.steps[i]
}

// gap is why compute had nothing to do between two uploads.
func (b *builder) gap(last, u *journal.Upload, first *journal.Step) (spans []timeline.Span) {
	if last.Number != u.Number-1 || last.Finished < 0 {
		return nil
	}
	b.account.gap(last, u, first, func(c journal.Cause, from, to time.Time) {
		s := b.span(timeline.Idle, from, to)
		s.Epoch, s.Batch, s.Why = first.Epoch, first.Batch, string(c)
		spans = append(spans, s)
	})
	return spans
}

func (b *builder) results() {
	var spans []timeline.Span
	for _, d := range b.downloads {
		s := b.span(timeline.Fetching, d.Sent, d.Arrived)
		s.Epoch, s.Batch = d.Epoch, d.Batch
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(x, y timeline.Span) int { return cmp.Compare(x.From, y.From) })
	for i := 1; i < len(spans); i++ { // one behind the other: each began when the last was done
		spans[i].From = max(spans[i].From, spans[i-1].To)
	}
	b.lanes(timeline.Downloads, map[int][]timeline.Span{-1: spans})
}

// loop is the loop that takes batches: it waits, for something, or is in its body.
func (b *builder) loop() {
	var spans []timeline.Span
	for i := range b.steps {
		s := &b.steps[i]
		add := func(k timeline.Kind, why journal.Cause, from, to time.Time) {
			at := b.span(k, from, to)
			at.Epoch, at.Batch, at.Why = s.Epoch, s.Batch, string(why)
			spans = append(spans, at)
		}
		s.Causes(s.Called, s.Delivered, func(c journal.Cause, from, to time.Time) { add(timeline.Idle, c, from, to) })
		add(timeline.Body, "", s.Delivered, s.Ended)
	}
	b.lanes(timeline.Loop, map[int][]timeline.Span{-1: spans})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Title is a title for a Timeline of a pipeline.
func (s *Snapshot) Title() string {
	device := s.Stats.Device
	if device == "" {
		device = "no device"
	}
	return fmt.Sprintf("%s, batches of %d", device, s.Plan.BatchSize)
}
