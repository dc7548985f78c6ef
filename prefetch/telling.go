package prefetch

import (
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/copytime"
	"github.com/leat-go/leat/observe/journal"
)

// What Options.Recorder is told. Without one none of this takes time.

// timeline is what is timed on the device, and who is told.
type timeline struct {
	copytime.Marks
	to journal.Recorder // nil if nobody is
}

// now is the time, if somebody is told.
func (l *timeline) now() (t time.Time) {
	if l.to != nil {
		t = time.Now()
	}
	return t
}

// begins tells of a goroutine of the pipeline, on it.
func (l *timeline) begins(role journal.Role) {
	if l.to != nil {
		l.to.Goroutine(role, 0)
	}
}

// told is what a recorder is told of a batch's upload.
type told struct {
	upload int64 // its number
	bytes  int64
	sent   time.Time
}

// sent notes that the work of an upload is submitted.
func (l *timeline) sent(number int64, slot int, windows []*window, up *uploading) {
	if l.to == nil {
		return
	}
	of := journal.Upload{Number: number, Batches: len(windows), Slot: slot}
	now := time.Now()
	for _, w := range windows {
		w.told = told{upload: of.Number, bytes: w.in.bytes(), sent: now}
		of.Bytes += w.told.bytes
		w.way.Copying = up.copying
	}
	l.Describe(up.mark, of)
}

// finish marks where compute ends with a batch, where one stream computes on all of them.
func (l *timeline) finish(w *window, computes int) error {
	if computes != 1 { // there is none, or each has an end of its own
		return nil
	}
	return l.Finished(w.stream, w.mark)
}

// fetched tells of a result that is on the host.
func (l *timeline) fetched(r *result) {
	if l.to != nil {
		l.to.Download(journal.Download{Epoch: r.at.Epoch, Batch: r.at.Batch, Bytes: r.extent.bytes(), Sent: r.sent, Arrived: time.Now()})
	}
}

// telling is a Reader's part: the step at hand.
type telling struct {
	step         journal.Step
	stream       *device.Stream // of the batch, nil without a device
	synchronized time.Duration  // for which the host had waited for it before
}

// waited notes a call of Next for a batch, or for none if that is not known yet.
func (r *Reader) waited(from time.Time, of journal.Parts, w *window, err error) {
	s := &r.telling.step
	if _, later := err.(again); w == nil && !later {
		*s = journal.Step{} // it is an end, and no step's
		return
	}
	if s.Called.IsZero() {
		s.Called = from
	}
	s.Parts = s.Parts.Plus(of)
}

// tellDelivered notes that a batch is the user's.
func (r *Reader) tellDelivered(w *window) {
	g := r.ahead.stages
	if g.timeline.to == nil {
		return
	}
	s := &r.telling.step
	s.Epoch, s.Batch, s.First = w.batch.Epoch, w.batch.Batch, w.batch.Position
	s.Rows, s.Valid, s.Substituted = w.batch.N, w.batch.Valid, len(w.substituted)
	s.Bytes, s.Padding = w.told.bytes, w.batch.Padding
	s.HostSlot, s.Slot, s.Stream, s.Upload = w.batch.Slot.ID, -1, -1, -1
	s.Ready = len(r.ahead.run.items)
	s.Way, s.Sent, s.Delivered = w.way, w.told.sent, r.returned
	s.Parts.Transform += r.ahead.run.late
	r.ahead.run.late = 0
	if w.slot != nil {
		s.Slot = w.slot.ID
	} else {
		s.Bytes = w.in.bytes()
	}
	if r.telling.stream = w.stream; w.stream != nil {
		s.Stream, s.Upload = g.computes.Index(w.stream), w.told.upload
		r.telling.synchronized = w.stream.Synchronized()
	}
}

// tell tells of the step whose body has ended.
func (r *Reader) tell(now time.Time, body time.Duration) {
	to := r.ahead.stages.timeline.to
	if to == nil {
		return
	}
	s := &r.telling.step
	s.Ended = now
	s.Parts.Body = body
	if r.telling.stream != nil {
		s.Synchronized = r.telling.stream.Synchronized() - r.telling.synchronized
	}
	to.Step(s)
	r.telling = telling{}
}
