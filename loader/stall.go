package loader

import (
	"bytes"
	"runtime"
	"strconv"
	"time"
)

// suspect is a goroutine inside user code, and what it is there for.
type suspect struct {
	epoch, number int // number of the batch in its epoch
	sample        int
	position      int64
	shard         int // one more than the number of a Stream's, 0 of other data
	stage         string
	goroutine     uint64
	batch         *batch // that it may write to, nil outside of the workers
}

// suspects are the goroutines inside user code at this moment.
func (r *Run) suspects() []suspect {
	var all []suspect
	for _, w := range r.crew.all() {
		b := w.at.Load()
		if b == nil {
			continue
		}
		all = append(all, w.suspect(b))
	}
	d := r.dispatcher
	s := suspect{epoch: int(d.epoch.Load()), position: d.position.Load(), goroutine: d.goroutine.Load()}
	s.number = r.loader.split.number(Cursor{Epoch: s.epoch, Position: s.position})
	switch {
	case d.getting.Load():
		s.sample, s.stage = -1, StageSlot
		all = append(all, s)
	case d.agreeing.Load() != 0:
		s.sample, s.stage = -1, StageAgree
		all = append(all, s)
	case d.iterating.Load() != 0 && d.merger == nil:
		s.sample, s.stage = int(s.position), StageIterate
		if once := r.loader.once; once != nil {
			s.goroutine = once.goroutine.Load()
		}
		all = append(all, s)
	}
	if d.merger != nil {
		all = append(all, d.merger.suspects()...)
	}
	if s, ok := r.disposal.suspect(); ok {
		all = append(all, s)
	}
	return all
}

// suspect is the worker, which is at a row of b.
func (w *worker) suspect(b *batch) suspect {
	s := suspect{
		epoch: b.filled.Epoch, number: b.filled.Batch, position: w.position.at(),
		stage: b.stage(), goroutine: w.goroutine.Load(), batch: b,
	}
	if w.limit != nil {
		s.goroutine = w.limit.goroutine.Load()
	}
	l := w.run.loader
	if l.stream != nil {
		s.sample, s.shard = int(s.position), l.shardAt(s.position)+1
		return s
	}
	// A worker between claims may still show a row of another batch.
	row := min(max(s.position-b.filled.Position, 0), l.split.batch-1)
	s.position = b.filled.Position + row
	s.sample = b.sample(int(row))
	if standIn := w.standIn.Load(); standIn >= 0 {
		s.sample = int(standIn)
	}
	return s
}

// stuck is the report that a suspect has not returned in time.
func (s suspect) stuck(grace time.Duration) *StuckError {
	return &StuckError{
		Epoch: s.epoch, Batch: s.number, Sample: s.sample, Position: s.position,
		Shard: s.shard - 1, Stage: s.stage, Grace: grace, Stack: stackOf(s.goroutine),
	}
}

// watch returns the channel that says when the next batch has taken too long for a wait
// that began then, nil if it may take for ever.
func (r *Run) watch(began time.Time) <-chan time.Time {
	if r.stall == nil {
		return nil
	}
	r.stall.Reset(r.loader.options.StallTimeout - r.age(began))
	return r.stall.C
}

// age is how long the producers have had for the next batch while somebody waited for it:
// a consumer that comes back after hours finds nothing late.
func (r *Run) age(began time.Time) time.Duration {
	switch since := r.attended.Load(); {
	case since == nobody:
		return 0
	case since > 0:
		if from := r.began.Add(time.Duration(since)); from.After(began) {
			began = from
		}
		return min(time.Since(r.waitedSince()), time.Since(began))
	}
	return min(time.Since(r.waitedSince()), r.waited+time.Since(began))
}

// waitedSince is when the producers had nothing but the next batch to see to: its
// slot was there, and the batch before it was complete. While there is no slot
// it is the consumer who is waited for.
func (r *Run) waitedSince() time.Time {
	var since time.Time
	if r.head != nil {
		since = r.head.filled.Times.Opened
	} else if out := max(r.dispatcher.iterating.Load(), r.dispatcher.crowded.Load(), r.dispatcher.agreeing.Load()); out != 0 {
		since = r.began.Add(time.Duration(out))
	} else {
		since = time.Now()
	}
	if since.Before(r.progress) {
		return r.progress
	}
	return since
}

// stalled returns an *Error for the sample that the next batch hangs on, or nil
// if its time is not over.
func (r *Run) stalled(began time.Time) error {
	timeout, age := r.loader.options.StallTimeout, r.age(began)
	if age < timeout {
		return nil
	}
	e := &Error{Sample: -1, Shard: -1, Stage: StageIterate}
	if r.head != nil {
		e.Epoch, e.Batch, e.Position = r.head.filled.Epoch, r.head.filled.Batch, r.head.filled.Position
		e.Stage = r.head.stage()
	}
	cause := &StallError{Timeout: timeout, Age: age}
	var culprit *suspect
	for _, s := range r.suspects() {
		mine := s.stage == StageIterate || s.stage == StageAgree || s.batch != nil && s.batch == r.head ||
			s.shard > 0 && s.batch == nil
		if s.stage == StageClose && s.shard == 0 { // of a sample: no batch waits for it, but the iterator may
			mine = culprit == nil && r.dispatcher.crowded.Load() != 0
		}
		if mine && (culprit == nil || s.position < culprit.position) {
			culprit = &s
		}
	}
	if s := culprit; s != nil {
		e.Epoch, e.Batch, e.Sample, e.Position, e.Shard, e.Stage = s.epoch, s.number, s.sample, s.position, s.shard-1, s.stage
		cause.Stack = stackOf(s.goroutine)
	}
	e.Err = cause
	return e
}

// goroutineID is the number that stack traces call the calling goroutine by.
func goroutineID() uint64 { return readGoroutineID(make([]byte, 64)) }

// readGoroutineID is goroutineID with memory of the caller's, who may not allocate.
func readGoroutineID(buf []byte) uint64 {
	line := bytes.TrimPrefix(buf[:runtime.Stack(buf, false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(line, []byte(" "))
	id, _ := strconv.ParseUint(string(digits), 10, 64)
	return id
}

// stackOf returns the stack of another goroutine, nil if it has ended. The
// runtime gives only all of them together, stopping the world meanwhile.
func stackOf(id uint64) []byte {
	const limit = 64 << 20
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || n >= limit {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	head := "goroutine " + strconv.FormatUint(id, 10) + " "
	for stack := range bytes.SplitSeq(buf, []byte("\n\n")) {
		if bytes.HasPrefix(stack, []byte(head)) {
			return bytes.Clone(stack)
		}
	}
	return nil
}
