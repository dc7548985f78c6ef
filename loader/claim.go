package loader

// A Claim is a pipeline's hold on a Loader. Package prefetch has one for each of its
// pipelines; programs that use prefetch need none.
//
// A source that gives its samples once (FromSeq) keeps them until they are delivered, and
// must know when that is. Without a Claim a batch counts as delivered when Run.Next returns
// it. A pipeline that works ahead of its consumer claims the source, and then says itself
// what is delivered. For other data Delivered and Reported do nothing.
type Claim struct{ loader *Loader }

// Claim makes the caller the only pipeline of a source that gives its samples once; the
// caller then has to call Loader.Close. It is an *OnePassError if another pipeline has
// claimed the source, or the source is closed. Other data can be claimed any number of
// times.
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

// Normalize returns the beginning of the next epoch for a cursor behind the last batch of
// one. Any other cursor, and each where the number of samples is not known, is returned as
// it is.
func (c Claim) Normalize(at Cursor) Cursor { return c.loader.normalize(at) }
