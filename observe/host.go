package observe

import (
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// Host is the host's account: of the loop that takes batches, and of the batches on their
// way to it. All figures add up over intervals.
type Host struct {
	// Steps were taken; their Bytes were uploaded, or without a device delivered, of which
	// Padding is what pads ragged fields. Padded is the number of rows that pad short batches.
	Steps, Rows, Padded, Bytes, Padding int64
	// Parts is where the time of the steps went.
	Parts journal.Parts
	// Synchronized is for how long of their bodies the host waited for the batches' streams,
	// and SynchronizedSteps how many of them did.
	Synchronized      time.Duration
	SynchronizedSteps int64
	// Step is how long each took, in Next and in the body, Wait and Body are the two.
	Step, Wait, Body Histogram
	// Dry is how many steps waited for producers, or for the order.
	Dry int64
	// Wake is how long a batch that was waited for had been ready when Next had it.
	Wake Histogram
	// Stay is the time for which batches were in each stage, added up. Divided by the time
	// that passed it is how many were there on average.
	Stay Stay
	// Downloads are a Map's results: from when the copy was submitted, behind the step, until
	// the host had it.
	Downloads     Histogram
	DownloadBytes int64
}

// Stay is the time for which batches were in the stages of a pipeline, added up.
type Stay struct {
	Filling  time.Duration // in a host slot, with rows to be written
	Filled   time.Duration // in a host slot, filled, and not submitted
	Waiting  time.Duration // submitted, and not delivered
	Consumed time.Duration // in the loop's body
}

// add adds a step.
func (h *Host) add(s *journal.Step) {
	h.Steps++
	h.Rows += int64(s.Rows)
	h.Padded += int64(s.Rows - s.Valid)
	h.Bytes += s.Bytes
	h.Padding += s.Padding
	h.Parts = h.Parts.Plus(s.Parts)
	if s.Synchronized > 0 {
		h.Synchronized += s.Synchronized
		h.SynchronizedSteps++
	}
	wait := s.Parts.Wait()
	h.Step.Add(wait+s.Parts.Body, 1)
	h.Wait.Add(wait, 1)
	h.Body.Add(s.Parts.Body, 1)
	if s.Parts.Producers+s.Parts.Order > 0 {
		h.Dry++
		if !s.Sent.IsZero() && s.Delivered.After(s.Sent) {
			h.Wake.Add(s.Delivered.Sub(s.Sent), 1)
		}
	}
	h.Stay.Filling += between(s.Opened, s.Filled)
	h.Stay.Filled += between(s.Filled, s.Sent)
	h.Stay.Waiting += between(s.Sent, s.Delivered)
	h.Stay.Consumed += between(s.Delivered, s.Ended)
}

// between is the time from one instant to a later one, 0 if either did not come.
func between(from, to time.Time) time.Duration {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return max(0, to.Sub(from))
}

// Sub is what h has more than before.
func (h Host) Sub(before *Host) Host {
	h.Steps -= before.Steps
	h.Rows -= before.Rows
	h.Padded -= before.Padded
	h.Bytes -= before.Bytes
	h.Padding -= before.Padding
	h.Parts = h.Parts.Minus(before.Parts)
	h.Synchronized -= before.Synchronized
	h.SynchronizedSteps -= before.SynchronizedSteps
	h.Step, h.Wait, h.Body = h.Step.Sub(before.Step), h.Wait.Sub(before.Wait), h.Body.Sub(before.Body)
	h.Dry -= before.Dry
	h.Wake = h.Wake.Sub(before.Wake)
	h.Stay.Filling -= before.Stay.Filling
	h.Stay.Filled -= before.Stay.Filled
	h.Stay.Waiting -= before.Stay.Waiting
	h.Stay.Consumed -= before.Stay.Consumed
	h.Downloads = h.Downloads.Sub(before.Downloads)
	h.DownloadBytes -= before.DownloadBytes
	return h
}
