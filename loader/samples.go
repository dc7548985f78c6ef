package loader

import "io"

// discard ends a sample that no batch takes. report is told of an error, of a panic,
// and of runtime.Goexit, after which discard does not return.
func discard(sample any, report func(error)) {
	c, ok := sample.(io.Closer)
	if !ok {
		return
	}
	returned := false
	defer func() {
		if !returned {
			report(caught(recover()))
		}
	}()
	err := c.Close()
	returned = true
	if err != nil {
		report(err)
	}
}

// discard ends the samples of rows lo to hi that Encode has not taken.
func (b *batch) discard(r *Run, lo, hi int) {
	if b.encoders == nil {
		return
	}
	row := lo
	defer func() {
		if row < hi { // Close called runtime.Goexit
			b.discard(r, row+1, hi)
		}
	}()
	for ; row < hi; row++ {
		e := b.encoders[row]
		b.encoders[row] = nil
		if e == nil {
			continue
		}
		discard(e, func(err error) {
			r.late(&Error{
				Epoch: b.filled.Epoch, Batch: b.filled.Batch, Sample: b.sample(row),
				Position: b.filled.Position + int64(row), Stage: StageClose, Err: err,
			})
		})
	}
}
