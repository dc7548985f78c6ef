package loader

// A Claim is a pipeline's hold on a Loader: package prefetch has one for each of its
// pipelines, and those who use prefetch need none.
//
// A source that gives its samples once (FromSeq) keeps them until they are delivered, and
// must know when that is. Of itself a Run takes a batch as delivered when Next returns it.
// A pipeline that works ahead of its consumer claims the source, and says itself what is
// delivered. For other data Delivered and Reported do nothing.
type Claim struct{ loader *Loader }

// Claim makes the caller the only pipeline of a source that gives its samples once, and
// Loader.Close the caller's to call. It is an *OnePassError if another pipeline has
// claimed the source, or it is closed. Other data can be claimed any number of times.
func (l *Loader) Claim() (Claim, error) {
	if l.once != nil {
		if err := l.once.claim(); err != nil {
			return Claim{}, err
		}
	}
	return Claim{l}, nil
}

// Delivered says that all before the cursor is delivered: its samples are not given
// again.
func (c Claim) Delivered(before Cursor) {
	if c.loader.once != nil {
		c.loader.once.delivered(before)
	}
}

// Reported says that the consumer has been told of a failure that Run.Next returned:
// the sample that failed is not given again.
func (c Claim) Reported(err error) {
	if c.loader.once != nil {
		c.loader.once.told(err)
	}
}

// Normalize turns the end of an epoch into the beginning of the next: a cursor from which
// the loader has no batch left in its epoch. Where the number of samples is not known it
// returns the cursor as it is.
func (c Claim) Normalize(at Cursor) Cursor { return c.loader.normalize(at) }
