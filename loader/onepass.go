package loader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
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
// is yielded. If encode fails because its context is cancelled, at the end of a range, it
// is called again for the same sample later. If the sample is an io.Closer it is not called
// again, since it has closed the sample: the failure is reported when it is that sample's
// turn.
//
// A live source that has no other sample for now yields Flush, beside any value: then a batch
// that is not full is delivered with what it has, and nobody waits for more.
//
// The source ends with its iterator, or with Loader.Close, which
// prefetch.Prefetcher.Close calls; then the iterator's yield returns false. The iterator
// gets no context: one that waits, in a channel receive for example, is not woken by
// Close, which returns a *StuckError after Options.GracePeriod. Before Close, close the
// channel, or end what else the iterator waits for.
//
// State Epochs: 1. A range after the source's end then yields nothing, while with no
// stated number of epochs it asks for a second epoch, and that is an *OnePassError.
func FromSeq[S any](fields []Field, seq iter.Seq2[S, error], encode func(ctx context.Context, sample S, row *Row) error) Iterable {
	p := &onePass{
		lacks:  errors.Join(required("seq", seq, "an iterator"), required("encode", encode, "a function")),
		fields: slices.Clone(fields),
		seq:    newSpare(encode).encoders(seq),
		more:   make(chan struct{}, 1),
		room:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	p.disposal = newDisposal(func(err *Error) { p.fail(err) })
	return p
}

// OnePassError is an attempt to read a source that gives its samples once (FromSeq)
// from another place than where it stands.
type OnePassError struct {
	// At is where the source stands: how much of it is delivered.
	At Cursor
	// Want is where it was to be read from.
	Want Cursor
	// Reason says what is wrong.
	Reason string
}

// Error implements error.
func (e *OnePassError) Error() string {
	return "loader: a source that gives its samples once: " + e.Reason
}

// misplaced is the error of reading a source at one place from another one.
func misplaced(at, want Cursor) *OnePassError {
	e := &OnePassError{At: at, Want: want}
	switch {
	case at.Epoch > 0 && want.Epoch > 0:
		return &OnePassError{At: at, Want: want, Reason: reasonEnded}
	case at == Cursor{}:
		e.Reason = fmt.Sprintf("it is at its beginning and cannot be read from epoch %d, position %d: what another process had of it is gone", want.Epoch, want.Position)
	default:
		e.Reason = fmt.Sprintf("it is at epoch %d, position %d, and cannot be read from epoch %d, position %d", at.Epoch, at.Position, want.Epoch, want.Position)
	}
	e.Reason += beginAgain
	return e
}

const (
	beginAgain    = "; FromSeqFunc makes an Iterable that can begin again"
	reasonEnded   = "it has ended, and has no other samples to give" + beginAgain + ", or state Epochs: 1 to end with it"
	reasonBusy    = "another Run reads it, which must be closed first"
	reasonClaimed = "another pipeline has it"
	reasonClosed  = "it is closed"
	reasonWrapped = "a pass over it has begun"
)

// readAhead is how many samples are read beyond those that a Run has taken: handing
// over each by itself would cost a switch of goroutines.
const readAhead = 16

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

// pull ranges over the iterator.
func (p *onePass) pull() {
	p.goroutine.Store(goroutineID())
	returned := false
	defer close(p.ended)
	defer func() {
		if returned {
			return
		}
		if err := caught(recover()); !p.put(nil, err) {
			p.fail(fmt.Errorf("loader: %s: %w", StageIterate, err)) // in its clean-up
		}
	}()
	for encoder, err := range p.seq {
		if !p.put(encoder, err) {
			break
		}
	}
	returned = true
}

// put keeps what the iterator gave, and waits until there is room for more. It
// reports false when the source is closed.
func (p *onePass) put(encoder Encoder, err error) bool {
	p.mu.Lock()
	if p.closed != "" {
		p.dispose(encoder, p.unkept)
		p.mu.Unlock()
		return false
	}
	if err == Flush {
		if n := len(p.kept); n > 0 { // else all is delivered
			p.kept[n-1].flush = true
		}
		p.mu.Unlock()
		wake(p.more)
		return true
	}
	p.kept = append(p.kept, p.item(encoder, err))
	p.gave = true
	full := len(p.kept)-p.taken >= readAhead
	p.mu.Unlock()
	wake(p.more)
	for full {
		select {
		case <-p.room:
		case <-p.stop:
			return false
		}
		p.mu.Lock()
		full = len(p.kept)-p.taken >= readAhead
		p.mu.Unlock()
	}
	return true
}

// samples is what the source has from where it stands, for the run that has begun to
// read it. An epoch that is not its first has none.
func (p *onePass) samples(ctx context.Context, epoch int) iter.Seq2[Encoder, error] {
	return func(yield func(Encoder, error) bool) {
		if epoch > 0 {
			p.mu.Lock()
			at := p.cursor()
			p.mu.Unlock()
			yield(nil, &OnePassError{At: at, Want: Cursor{Epoch: epoch}, Reason: reasonEnded})
			return
		}
		for {
			it, ok := p.take(ctx)
			switch {
			case !ok:
				return
			case it == nil:
				if !yield(nil, Flush) {
					return
				}
			case it.broken != nil:
				yield(nil, it.broken)
				return
			case !yield(it, nil):
				return
			}
		}
	}
}

// take waits for the next sample, or for a flush behind the last, which is nil. It reports
// false at the end of the source, and when ctx is done.
func (p *onePass) take(ctx context.Context) (*item, bool) {
	for ended := false; ; {
		p.mu.Lock()
		if p.taken > 0 && p.kept[p.taken-1].flush && !p.flushed {
			p.flushed = true
			p.mu.Unlock()
			return nil, true
		}
		if p.taken < len(p.kept) {
			it := p.kept[p.taken]
			p.taken++
			p.flushed = false
			p.mu.Unlock()
			wake(p.room)
			return it, true
		}
		p.mu.Unlock()
		if ended {
			return nil, false
		}
		select {
		case <-p.more:
		case <-p.ended:
			ended = true // look once more
		case <-ctx.Done():
			return nil, false
		}
	}
}

// returned is what Next has returned: an error, or all before a cursor. Where nobody
// has claimed the source, it is delivered.
func (p *onePass) returned(before Cursor, err error) {
	p.mu.Lock()
	claimed := p.claimed
	p.mu.Unlock()
	if claimed {
		return
	}
	p.delivered(before)
	if err != nil {
		p.told(err)
	}
}

// told ends the sample whose failure is err. No other error does: one of the user's may
// wrap another Run's failure, at any position.
func (p *onePass) told(err error) {
	var failure *Error
	if errors.As(err, &failure) && failure.of.item != nil {
		p.failed(failure.of)
	}
}

// delivered ends the samples before a cursor.
func (p *onePass) delivered(before Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(min(max(before.Position-p.at, 0), int64(len(p.kept))))
	if before.Epoch > 0 {
		n, p.over = len(p.kept), true
	}
	p.remove(0, n)
	p.at += int64(n)
}

// failed ends the sample whose failure was reported. Those behind it move up.
func (p *onePass) failed(of ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.kept, of.item); i >= 0 && of.item.lap == of.lap {
		p.remove(i, i+1)
	}
}

// broken names what was taken last, if that is an error of the iterator's.
func (p *onePass) broken() ticket {
	if p == nil {
		return ticket{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == 0 || p.kept[p.taken-1].broken == nil {
		return ticket{}
	}
	return p.kept[p.taken-1].ticket()
}

// close ends the source: what is kept is for nobody, and the iterator is to end. It
// waits for that, and for the Close of what was kept, no longer than grace.
func (p *onePass) close(grace time.Duration) error {
	p.mu.Lock()
	if p.closed != "" {
		p.mu.Unlock()
		return nil
	}
	p.closed = reasonClosed
	p.unkept = p.at + int64(len(p.kept))
	p.remove(0, len(p.kept))
	pulling := p.pulling
	p.mu.Unlock()
	close(p.stop)
	stuck := error(nil)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	if pulling {
		select {
		case <-p.ended:
		case <-timer.C:
			timer.Reset(0) // for what follows too
			stuck = p.pullsAt().stuck(grace)
		}
	}
	select {
	case <-p.disposal.atRest():
	case <-timer.C:
		if s, ok := p.disposal.suspect(); ok {
			stuck = errors.Join(stuck, s.stuck(grace))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(stuck, p.failure)
}

// pullsAt is pull, inside the iterator of a source that is closed.
func (p *onePass) pullsAt() suspect {
	p.mu.Lock()
	defer p.mu.Unlock()
	return suspect{
		number: p.number(p.unkept), sample: int(p.unkept), position: p.unkept,
		stage: StageIterate, goroutine: p.goroutine.Load(),
	}
}

// number is that of the batch which a position is in.
func (p *onePass) number(position int64) int { return int(position / max(p.global, 1)) }

// remove takes items out of kept, ends their samples and uses them again.
func (p *onePass) remove(lo, hi int) {
	for i, it := range p.kept[lo:hi] {
		if it.busy.Load() {
			continue
		}
		if it.sample != nil {
			p.dispose(it.sample, p.at+int64(lo+i))
		}
		it.reset()
		p.free = append(p.free, it)
	}
	p.kept = slices.Delete(p.kept, lo, hi)
	p.taken = max(min(p.taken, lo), p.taken-(hi-lo))
}

// dispose ends the sample at a position, which no Run takes any more.
func (p *onePass) dispose(sample any, position int64) {
	p.disposal.add(sample, 0, p.number(position), position)
}

// fail keeps what went wrong where no Run can tell it.
func (p *onePass) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

// wake wakes whoever waits on c, now or next.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
