package loader

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// FromSeq makes an Iterable of an iterator that gives its samples once: a channel, a
// socket, a generator with a state of its own. It is ranged over once, on a goroutine
// of its own that begins with the first Run. It is one epoch of one pipeline, and
// what would need another pass is an *OnePassError: a second epoch, a Seek, a
// Restore of a State elsewhere, several ranks.
//
// Leaving a range loses nothing: what was read ahead and not delivered is kept, as a
// copy of its row once it is encoded, and is delivered next. A sample that encode
// fails for, and an error that the iterator gives, are reported once: a range after
// that goes on with the sample behind it, so that one malformed request does not stop
// a server.
//
// encode is as for FromSeqFunc, and so is the rule that a sample must not change after it
// is yielded. It is called again for the same sample if it fails because its context is
// cancelled, at the end of a range; and if it has asked for the row's Position or random
// numbers and a sample before it fails, since those behind move up by one position. A sample
// that is an io.Closer it has closed, so it is not called again: the failure is reported when
// it is that sample's turn, and a sample that has moved up is delivered as it was encoded.
//
// A live source that has no other sample for now yields Flush, beside any value: then a batch
// that is not full is delivered with what it has, and nobody waits for more. Channel does
// that for a channel.
//
// The source ends with its iterator, or with Loader.Close, which
// prefetch.Prefetcher.Close calls; then the iterator's yield returns false. The iterator
// gets no context: one that waits, in a channel receive for example, is not woken by
// Close, which returns a *StuckError after Options.GracePeriod. Before Close, close the
// channel, or end what else the iterator waits for.
//
// Options.Epochs is 1, or 0, which means 1 here. A range after the source's end yields
// nothing.
func FromSeq[S any](fields []Field, seq iter.Seq2[S, error], encode func(ctx context.Context, sample S, row *Row) error) Iterable {
	p := &onePass{
		lacks:  errors.Join(required("seq", seq, "an iterator"), required("encode", encode, "a function")),
		fields: cloneFields(fields),
		seq:    newSpare(encode).encoders(seq),
		more:   make(chan struct{}, 1),
		room:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	p.disposal = newDisposal(func(err *Error) { p.fail(err) })
	return p
}

// onePass is the Iterable of FromSeq. It outlives the Runs that read it.
//
// Its goroutine, pull, ranges over the iterator and puts the samples into kept. It
// ends with the iterator or by close. A Run's dispatcher takes them from there,
// where they stay until they are delivered.
type onePass struct {
	lacks  error // what it was not given
	fields []Field
	seq    iter.Seq2[Encoder, error]

	more  chan struct{} // wakes who takes samples
	room  chan struct{} // wakes pull
	stop  chan struct{} // closed by close
	ended chan struct{} // closed when pull has ended

	goroutine atomic.Uint64 // pull's
	disposal  *disposal     // of the samples that no Run takes any more

	mu      sync.Mutex
	claimed bool
	pulling bool    // pull was started
	closed  string  // why it gives nothing any more; empty while it does
	over    bool    // all is delivered, and the end too
	run     *Run    // reads now; nil if none does
	kept    []*item // read and not delivered
	at      int64   // the position of the first of them
	unkept  int64   // that of the first sample which close did not let in
	global  int64   // samples of a batch, of all ranks; 0 before the first run
	taken   int     // by run
	flushed bool    // run was told of the flush behind the last that it has taken
	gave    bool    // any sample at all
	failure error   // the first of the samples' Close, or of the iterator's clean-up
	free    []*item
}

func (p *onePass) Fields() []Field { return p.fields }
func (p *onePass) missing() error  { return p.lacks }

// Samples implements Iterable for one that wraps a source and hides from NewIterable
// what it is: nothing is kept then, but neither is there a second pass.
func (p *onePass) Samples(_ context.Context, epoch int) iter.Seq2[Encoder, error] {
	return func(yield func(Encoder, error) bool) {
		from := Cursor{Epoch: epoch}
		p.mu.Lock()
		err := p.refuse(from)
		if err == nil && (p.pulling || p.claimed) {
			err = &OnePassError{At: p.cursor(), Want: from, Reason: reasonClaimed}
		}
		if err == nil {
			p.closed = reasonWrapped
		}
		p.mu.Unlock()
		if err != nil {
			yield(nil, err)
			return
		}
		p.seq(yield)
	}
}

// cursor is how far the source is delivered.
func (p *onePass) cursor() Cursor {
	if p.over {
		return Cursor{Epoch: 1}
	}
	return Cursor{Position: p.at}
}

// check reports whether the source can be read from a cursor on.
func (p *onePass) check(from Cursor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuse(from)
}

func (p *onePass) refuse(from Cursor) error {
	from.Substituted = 0
	switch {
	case p.closed != "":
		return &OnePassError{At: p.cursor(), Want: from, Reason: p.closed}
	case from == p.cursor():
	case p.over && from == Cursor{Position: p.at}: // just before the end
	case from == Cursor{Epoch: 1} && p.exhausted(): // just behind it
	default:
		return misplaced(p.cursor(), from)
	}
	return nil
}

// exhausted reports whether the iterator has ended, and all that it gave is delivered.
func (p *onePass) exhausted() bool {
	select {
	case <-p.ended:
		return len(p.kept) == 0
	default:
		return false
	}
}

// claim takes the source for one pipeline.
func (p *onePass) claim() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	reason := ""
	switch {
	case p.closed != "":
		reason = p.closed
	case p.claimed:
		reason = reasonClaimed
	default:
		p.claimed = true
		return nil
	}
	return &OnePassError{At: p.cursor(), Want: p.cursor(), Reason: reason}
}

// gaveAny reports whether p is a source, and its iterator gave anything at all.
func (p *onePass) gaveAny() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gave
}

// begin makes r the run that reads the source.
func (p *onePass) begin(r *Run, from Cursor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refuse(from); err != nil {
		return err
	}
	if p.run != nil {
		return &OnePassError{At: p.cursor(), Want: from, Reason: reasonBusy}
	}
	p.run, p.taken, p.flushed, p.global = r, 0, false, r.loader.split.global()
	if !p.pulling {
		p.pulling = true
		go p.pull() // ends with the iterator, or by close
	}
	return nil
}

// end is the end of r, whose goroutines are joined. A sample that still is in encode
// was reported as stuck: nobody else may have it.
func (p *onePass) end(r *Run) {
	p.mu.Lock()
	if p.run != r {
		p.mu.Unlock()
		return
	}
	p.run, p.taken = nil, 0
	p.kept = slices.DeleteFunc(p.kept, func(it *item) bool { return it.busy.Load() })
	p.mu.Unlock()
}
