package slotmodel

import "github.com/leat-go/leat/internal/life"

// A Shape is the size of a pipeline, and which of its parts it has.
type Shape struct {
	Buffers  int // pinned, up to 4
	Slots    int // of the device, up to 3
	Together int // batches in a copy, and windows in a slot: 1 or 2
	Computes int // compute streams: 1 or 2
	Batches  int // up to 6
	// UsedOn has a second stream read each batch, as Batch.UsedOn allows.
	UsedOn bool
}

// A Mistake is something left out or done wrong, for which the exploration must find an
// order of things that breaks a promise.
type Mistake uint8

// The mistakes.
const (
	None Mistake = iota

	// The two rules, and the third edge.
	NoWaitRead       // the copy stream's wait for the last lap's reads
	NoRecordRead     // compute's Record of its read
	NoRecordFilled   // the copy stream's Record of filled
	NoWaitFilled     // compute's wait for it
	NoRecordCopied   // the copy stream's Record of copied
	NoAwaitCopied    // the recycler's wait for it
	BackBeforeRecord // P1: the slot is back before its reads' Records
	SendBeforeRecord // the recycler gets buffers before Record of copied

	// What travels together.
	OwnEvents        // the recycler waits for each buffer's own event
	RecordTooEarly   // copied is recorded behind the first copy of several
	EndReadWithFirst // compute's read ends with the first of a slot's batches
	BackWithFirst    // the slot is back with the first of its batches

	// UsedOn.
	NoWaitUsed   // the second stream's wait for filled
	NoRecordUsed // the Record at Release

	// Several compute streams.
	TakeUnread // a slot is taken while it is read

	// Faults.
	PutDoubtful       // buffers of a copy that failed are put back
	CopiedInFault     // after the recycler's fault what is in flight counts as copied
	FreeFailed        // a slot that failed goes straight back into the ring
	RestWithoutCopies // what is in doubt is taken back while the copy stream works
	RestWithoutReads  // and a slot that failed while streams read it
	PutStuck          // the buffer of a producer that hangs is put back
	PutUnadmitted     // and put back from quarantine without Readmit
	KeepDiscarded     // a batch that is discarded does not hand its slot back
	SkipFailed        // the error passes over a batch
)

// String is the mistake's name.
func (m Mistake) String() string {
	return [...]string{"None", "NoWaitRead", "NoRecordRead", "NoRecordFilled", "NoWaitFilled", "NoRecordCopied", "NoAwaitCopied",
		"BackBeforeRecord", "SendBeforeRecord", "OwnEvents", "RecordTooEarly", "EndReadWithFirst", "BackWithFirst", "NoWaitUsed",
		"NoRecordUsed", "TakeUnread", "PutDoubtful", "CopiedInFault", "FreeFailed", "RestWithoutCopies", "RestWithoutReads",
		"PutStuck", "PutUnadmitted", "KeepDiscarded", "SkipFailed"}[m]
}

// A Fault is what may go wrong, once, at any moment at which it can.
type Fault uint8

// The faults.
const (
	NoFault       Fault = iota
	ReadFails           // a sample can't be read
	UploadFails         // any call of the uploader
	HandOverFails       // compute's wait for filled
	ReleaseFails        // a Record at a Release
	RecycleFails        // the recycler's event
	Stopped             // Close, Seek or a context's end, from another goroutine
	Stuck               // a producer ignores its context
)

// String is the fault's name.
func (f Fault) String() string {
	return [...]string{"NoFault", "ReadFails", "UploadFails", "HandOverFails", "ReleaseFails", "RecycleFails", "Stopped", "Stuck"}[f]
}

// Options say what to explore.
type Options struct {
	Shape Shape
	// Fault is what may happen once.
	Fault Fault
	// Mistake is what is wrong.
	Mistake Mistake
	// Buffer and Batch are the machines. Nil means those of package life.
	Buffer func(life.Buffer, life.BufferEvent) (life.Buffer, bool)
	Batch  func(life.Batch, life.BatchEvent) (life.Batch, bool)
}

// Moves are the moves of the two machines that were made.
type Moves struct {
	Buffers map[life.Buffer]map[life.BufferEvent]bool
	Batches map[life.Batch]map[life.BatchEvent]bool
}
