package loader

// A source that gives its samples once (FromSeq) keeps them until they are delivered,
// and must know when that is. Of itself a Run takes a batch as delivered when Next
// returns it. A pipeline that works ahead of its consumer, as package prefetch does, takes
// the source by Claim and says itself what is delivered. For other Loaders these methods
// do nothing.

// Claim is for a pipeline that stands on the loader: package prefetch calls it, and users
// of prefetch don't. It makes the caller the only pipeline of a source that gives its samples once:
// what is delivered is what Delivered and Reported say from here on, and Close is the
// caller's to call. It is an *OnePassError if another pipeline has claimed the source,
// or it is closed.
func (l *Loader) Claim() error {
	if l.once == nil {
		return nil
	}
	return l.once.claim()
}

// Delivered says that all before the cursor is delivered: its samples are not given
// again. Package prefetch calls it, as it does Claim.
func (l *Loader) Delivered(before Cursor) {
	if l.once != nil {
		l.once.delivered(before)
	}
}

// Reported says that the consumer has been told of a failure that Run.Next returned:
// the sample that failed is not given again. Package prefetch calls it, as it does Claim.
func (l *Loader) Reported(err error) {
	if l.once != nil {
		l.once.told(err)
	}
}

// Close ends a source that gives its samples once: samples that were not delivered are
// closed, if they are io.Closers, and the iterator is told to end. It is a *StuckError
// if that is not done within Options.GracePeriod, for an iterator that waits on a
// channel is not woken, and it joins the first failure of a sample's Close, an *Error.
// Close its Runs first. Later calls do nothing. A Loader of any other data
// owns nothing, and need not be closed.
func (l *Loader) Close() error {
	if l.once == nil {
		return nil
	}
	return l.once.close(l.options.GracePeriod)
}
