package loader

import "context"

// intake is a batch that samples are put into one after the other, and handed over to the
// workers a few at a time while others are still to come. It belongs to the dispatcher's
// goroutine.
type intake struct {
	*dispatcher
	// batch is nil between two. While it is not, the dispatcher holds its share: what
	// becomes of the batch is not known.
	batch  *batch
	rows   int // in batch so far
	handed int // of them, to the workers
}

// start opens a batch. It reports false when the run is over.
func (in *intake) start(ctx context.Context, filled Filled) bool {
	in.batch, in.rows, in.handed = in.open(ctx, filled), 0, 0
	return in.batch != nil
}

// add puts a sample into the batch's next row.
func (in *intake) add(encoder Encoder) {
	in.batch.encoders[in.rows] = encoder
	in.rows++
	if in.rows-in.handed >= int(in.run.group.Load()) {
		in.hand(false)
	}
}

// hand hands over the rows that are waiting to be; last says that there will be no others
// in the batch.
func (in *intake) hand(last bool) {
	in.run.lineup.hand(in.batch, in.rows-in.handed, last)
	in.handed = in.rows
}

// seal lets the batch go: what becomes of it is known, and after is the place behind it.
func (in *intake) seal(after Cursor) {
	b := in.batch
	b.filled.N, b.filled.Valid = in.rows, in.rows
	b.filled.After = after
	in.hand(true)
	in.batch = nil
	in.dispatcher.handed(b, in.rows)
}

// abandon ends the samples that wait for others to be handed over with, when the run
// ends before that.
func (in *intake) abandon() {
	if in.batch != nil {
		in.batch.discard(in.run, span{in.handed, in.rows})
	}
}

// refuse ends the run with the failure of what was to come next.
func (in *intake) refuse(ctx context.Context, err *Error) {
	if in.batch == nil {
		in.fail(ctx, err)
		return
	}
	// An earlier row of the same batch may yet fail, and is then the one to report.
	in.batch.fail(in.run, in.rows, err)
	in.seal(in.batch.filled.After)
}
