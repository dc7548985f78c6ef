package journal

import "time"

// A Recorder is told what the parts of one pipeline have done, by who did it and when it is
// over. Its methods are called on the pipeline's own goroutines, several at a time: they must
// return at once, and keep no pointer. What they do, and how long it takes, is part of what
// they measure.
type Recorder interface {
	// Goroutine is called on every goroutine that works for the pipeline, when it begins.
	// Workers are numbered from 0, others are 0.
	Goroutine(role Role, number int)
	// Reading is called by a worker before it reads samples, which Read then tells of, unless
	// one of them fails.
	Reading(worker int)
	// Read tells of samples that a worker has read.
	Read(Read)
	// Step tells of a batch, when the loop is done with it: at the next call of Next, or at
	// the end of the range. Steps of one pipeline come one at a time, in order.
	Step(*Step)
	// Upload tells of an upload that was timed on the device, some time after that. Uploads
	// of one pipeline come in order.
	Upload(*Upload)
	// Download tells of a result of a Map that has come back.
	Download(Download)
}

// Grouped is a Recorder for several pipelines that make each step together: what package
// prefetch/group is given. Each of them is told to a Recorder of its own.
type Grouped interface {
	Recorder
	// Member is the Recorder of the i-th pipeline.
	Member(i int) Recorder
}

// A Role is what a goroutine of a pipeline does.
type Role string

// The goroutines of a pipeline that works.
const (
	Dispatcher Role = "dispatcher" // opens batches, in host slots
	Worker     Role = "worker"     // reads samples
	Uploader   Role = "uploader"   // submits copies
	Stepper    Role = "stepper"    // calls a Map's step
)

// Read is neighbouring samples that a worker has read, one after the other, into one batch.
type Read struct {
	// Worker counts from 0.
	Worker int
	// Epoch and Batch are the batch's. Position is the first sample's place in the epoch's
	// order, and Sample its index, or the position where samples have no index.
	Epoch, Batch int
	Position     int64
	Sample       int
	// Samples is how many there were. Those that cost little are timed several at a time.
	Samples int
	// From is when the worker began with the first, and Took how long all took, including
	// the time for which it waited in user code.
	From time.Time
	Took time.Duration
}

// Step is one batch's way through the pipeline.
type Step struct {
	// Epoch and Batch are the batch's, First is the place of its first row in the epoch's
	// order.
	Epoch, Batch int
	First        int64
	// Rows is the number of its rows, Valid of those that are not padding.
	Rows, Valid int
	// Bytes is what of it was uploaded, or without a device delivered. Padding is how many of
	// these pad ragged fields.
	Bytes, Padding int64
	// Substituted is how many of its samples stand in for others.
	Substituted int

	// HostSlot, Slot and Stream are which host slot, device slot and compute stream it had,
	// each from 0; -1 where there is none.
	HostSlot, Slot, Stream int
	// Upload is the number of its upload, from 0: batches of one number travelled together.
	// It is -1 without a device.
	Upload int64
	// Ready is how many batches behind it could have been delivered at the same time.
	Ready int

	Way

	// Sent is when all work for its upload was submitted, or without one when it was filled:
	// from then on it is ready for Next.
	Sent time.Time
	// Called is when Next was called for it, Delivered when Next had it, and Ended when the
	// loop's body was over. A call that its context ended counts; time between two such calls
	// is in no part.
	Called, Delivered, Ended time.Time
	// Synchronized is for how long of the body the host waited for the batch's stream.
	Synchronized time.Duration
	// Parts is where the time of the step went, from Called to Ended. Their sum is the time
	// in Next and in the body, to the nanosecond, and they are what prefetch.Stats adds up.
	// That has also waits which ended without a batch, at an epoch's end.
	Parts Parts
}

// Upload is what timed events say of one upload. Not every upload is timed. Its times are on
// the device's clock, since Origin.
type Upload struct {
	// Number is that of Step.Upload, Batches and Bytes what travelled.
	Number  int64
	Batches int
	Bytes   int64
	// Slot is the device slot that it went to.
	Slot int
	// Sent is when the host began to submit it: no operation started before.
	Sent time.Time
	// Origin is when the device's clock was 0, as far as the host can tell.
	Origin time.Time
	// Started is when the copy stream could begin with the copy, behind the slot's last
	// reader, and Copied when the copy was done.
	Started, Copied time.Duration
	// Begun is when a Transform could begin, behind the copy and the slot's last reader, and
	// Loaded when it was done and compute could begin. Without one both are Copied.
	Begun, Loaded time.Duration
	// Reached is when the compute stream had nothing left to do before the first of its
	// batches and was told of that one, and Finished when it had done all that was submitted
	// until the last of its batches was released. Finished is -1 if nobody knows: with several
	// compute streams, or where a batch was not delivered.
	Reached, Finished time.Duration
	// Released is when the last of its batches was. Where that is when Finished is, the stream
	// had done all before, and nobody knows since when.
	Released time.Time
}

// Download is a result of a Map on its way back to the host.
type Download struct {
	// Epoch and Batch are those of the batch whose result it is.
	Epoch, Batch int
	Bytes        int64
	// Sent is when the copy was submitted, behind the step, and Arrived when the host had it.
	Sent, Arrived time.Time
}
