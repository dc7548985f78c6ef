package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/leat-go/leat/loader/internal/mix"
)

// Loader says which samples make up which batch, and how a batch's bytes are
// laid out. It is immutable, owns no goroutine and no memory, and may be shared;
// the work is done by its Runs. One exception: a Loader whose source gives its samples
// once (FromSeq) serves one pipeline, and must be closed.
type Loader struct {
	options     Options
	staff       staff
	tuned       *atomic.Pointer[tuner] // by the last Run; nil inside before the first
	layout      *Layout
	split       plan
	known       bool   // whether the number of samples is
	fields      string // as a State tells them
	fingerprint uint64
	dataset     Dataset                   // or else
	tree        tree                      // of the dataset
	leaves      []Dataset                 // of the tree
	excluded    *exclusions               // nil if nothing is
	costs       *costs                    // of the dataset's samples
	iterable    Iterable                  // this,
	once        *onePass                  // the iterable, if it gives its samples once
	stream      Stream                    // or this,
	kept        json.RawMessage           // which has this in its States if it is a Keeper,
	shards      int                       // has so many,
	merger      func(*dispatcher) merging // and this of one Run
	single      *Layout                   // and this of one sample
	replay      []Filled                  // or these batches, for ever
	deal        dealer                    // says which of the dataset's steps a Run takes; nil: all
}

// New makes a Loader of a dataset. batchSize is the number of rows of one rank's
// batch: 1 or more, and at most 2³¹-1 over all ranks. The error joins every mistake in
// the batch size, the options and the fields, each an *OptionError; a dataset without
// samples is ErrNoSamples, and too few of them for one global batch under Drop is
// ErrTooFewSamples.
func New(ds Dataset, batchSize int, o Options) (*Loader, error) {
	if err := required("Dataset", ds, "a dataset"); err != nil {
		return nil, err
	}
	samples := int64(ds.Len())
	l, err := newLoader(ds.Fields(), batchSize, o)
	err = errors.Join(err, incomplete(ds), o.forStreams("a Dataset"))
	if samples <= 0 {
		err = errors.Join(err, fmt.Errorf("%w: the dataset's length is %d", ErrNoSamples, samples))
	}
	if samples > maxSamples {
		err = errors.Join(err, &OptionError{Option: "Len", Value: samples, Want: fmt.Sprintf("%d samples or fewer", int64(maxSamples))})
	}
	if err != nil {
		return nil, err
	}
	l.dataset = ds
	l.split.samples, l.known = samples, true
	if l.split.steps(0) == 0 { // of the largest batch size: no epoch is to be empty
		return nil, fmt.Errorf("%w: %d samples, and %s; Last: Pad would fill them up",
			ErrTooFewSamples, samples, l.split.takes())
	}
	l.tree, l.leaves = roots(ds)
	if err := l.exclude(); err != nil {
		return nil, err
	}
	l.fingerprint = fingerprint(ds, l.layout)
	l.costs = newCosts(l)
	return l, nil
}

// NewIterable makes a Loader of a dataset without random access. The samples come
// in the iterator's own order, and every rank ranges over all of them and takes
// its part of each global batch. Shuffle, Pad and Substitute need random access,
// and are refused. A source that gives its samples once (FromSeq) is for one
// rank and one epoch.
func NewIterable(it Iterable, batchSize int, o Options) (*Loader, error) {
	if err := required("Iterable", it, "an iterable"); err != nil {
		return nil, err
	}
	once, _ := it.(*onePass)
	if once != nil && o.Epochs == 0 {
		o.Epochs = 1 // what it has
	}
	l, err := newLoader(it.Fields(), batchSize, o)
	err = errors.Join(err, incomplete(it), o.forStreams("an Iterable"), o.inOrder("an Iterable"))
	refuse := func(bad bool, option string, value any, want string) {
		if bad {
			err = errors.Join(err, &OptionError{Option: option, Value: value, Want: want + ": it is for a Dataset or a Stream"})
		}
	}
	refuse(o.ReadTimeout > 0, "ReadTimeout", o.ReadTimeout, "0")
	refuse(len(o.BatchSizes) > 0, "BatchSizes", o.BatchSizes, "empty")
	refuse(len(o.Exclude) > 0, "Exclude", o.Exclude, "empty")
	if once != nil && o.Epochs > 1 {
		err = errors.Join(err, &OptionError{Option: "Epochs", Value: o.Epochs, Want: "0 or 1: FromSeq gives its samples once, FromSeqFunc in every epoch"})
	}
	if once != nil && o.Shard.Count > 1 {
		err = errors.Join(err, &OptionError{Option: "Shard.Count", Value: o.Shard.Count,
			Want: "0 or 1: every rank takes its part of the same samples, which FromSeqFunc can give to all, and FromSeq to one"})
	}
	if err != nil {
		return nil, err
	}
	l.iterable, l.once = it, once
	// No position is past the end of what may go on for ever.
	l.split.samples = maxSamples
	l.fingerprint = fingerprint(it, l.layout)
	return l, nil
}

func newLoader(fields []Field, batchSize int, o Options) (*Loader, error) {
	invalid := o.validate(batchSize)
	// Any batch size serves to find the mistakes in the fields; its own is
	// reported once, with the other options.
	sizes, rows := o.scheduled(batchSize)
	if rows < 1 || rows > maxBatch {
		rows = 1
	}
	layout, err := NewLayout(fields, rows)
	if err := errors.Join(invalid, err, inputs(fields)); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return &Loader{
		options: o,
		staff:   o.staff(layout),
		tuned:   new(atomic.Pointer[tuner]),
		layout:  layout,
		fields:  listed(layout.names()),
		split: plan{sizes: sizes, split: split{
			batch: int64(rows),
			rank:  int64(o.Shard.Index),
			ranks: int64(o.Shard.Count),
			last:  o.Last,
		}},
	}, nil
}

// inputs refuses fields that have their lengths of another: the samples tell all lengths.
func inputs(fields []Field) error {
	var errs []error
	for i, f := range fields {
		if f.Ragged != nil && f.Ragged.Like != "" {
			errs = append(errs, &OptionError{Option: f.option(i) + ".Ragged.Like", Value: f.Ragged.Like,
				Want: "no name: a dataset's field has lengths of its own"})
		}
	}
	return errors.Join(errs...)
}

// fingerprint covers the fields and what the data says of itself.
func fingerprint(data any, layout *Layout) uint64 {
	h := mix.Hash(uint64(layout.written))
	for _, f := range layout.Written() {
		h = mix.Hash(h, uint64(f.DType), uint64(len(f.Shape)), uint64(len(f.Name)))
		for _, dim := range f.Shape {
			h = mix.Hash(h, uint64(dim))
		}
		for _, c := range []byte(f.Name) {
			h = mix.Hash(h, uint64(c))
		}
		if f.Ragged != nil { // how they are batched is not part of the samples
			h = mix.Hash(h, 1)
		}
	}
	if f, ok := data.(Fingerprinter); ok {
		h = mix.Hash(h, f.Fingerprint())
	}
	return h
}

// Layout is the layout of the batches.
func (l *Loader) Layout() *Layout { return l.layout }

// BatchSize is the number of rows of one rank's full batch, of the largest if
// Options.BatchSizes has others.
func (l *Loader) BatchSize() int { return l.layout.batch }

// Options are the options in force: as given, with the defaults filled in.
func (l *Loader) Options() Options { return l.options }

// Batches is the number of batches in the first epoch, the same on every rank, where it is
// known: an Iterable's is not, nor a Stream's without Options.Steps. It is that of every
// epoch, unless Options.Exclude has steps or Options.BatchSizes changes the batch size;
// BatchesFrom tells any epoch's.
func (l *Loader) Batches() (n int, known bool) { return l.BatchesFrom(Cursor{}) }

// BatchesFrom is the number of batches from a cursor to the end of its epoch, where it is
// known. It panics for a cursor that no epoch has.
func (l *Loader) BatchesFrom(at Cursor) (n int, known bool) {
	if l.options.Steps > 0 && at.Epoch >= 0 && at.Position >= 0 {
		return int(l.split.rest(at)), true
	}
	if !l.known {
		return 0, false
	}
	at.Substituted = 0
	if err := l.validate(at); err != nil {
		panic(err)
	}
	return int(l.split.left(at)), true
}

// Samples is the number of samples in the first epoch over all ranks, where it is known. It is
// that of every epoch, unless a Stream has Options.Steps and Options.BatchSizes.
func (l *Loader) Samples() (n int64, known bool) {
	if l.split.fixed > 0 {
		return l.split.length(0), true
	}
	if !l.known {
		return 0, false
	}
	return l.split.samples, true
}

// Order is the order of an epoch over all ranks. An Iterable has none to tell;
// asking for it panics, as does a negative epoch.
func (l *Loader) Order(epoch int) *Order {
	o := l.order(epoch)
	return &o
}

func (l *Loader) order(epoch int) Order {
	if !l.known {
		panic("loader: Order of an Iterable")
	}
	if epoch < 0 {
		panic(fmt.Sprintf("loader: Order of epoch %d, want 0 or more", epoch))
	}
	return newOrder(l.options.Seed, epoch, l.split.samples, l.options.Shuffle)
}

// pass is the samples of an epoch of an Iterable; of a source that gives them once,
// those that are not delivered.
func (l *Loader) pass(ctx context.Context, epoch int) iter.Seq2[Encoder, error] {
	if l.once != nil {
		return l.once.samples(ctx)
	}
	return l.iterable.Samples(context.WithValue(ctx, seedKey{}, l.options.Seed), epoch)
}

// Start begins to fill batches, from the cursor on, into slots of mem, until the
// last epoch ends, a sample fails, ctx is done, or Close. The Run owns the
// goroutines; the caller must Close it. A cursor outside the data is reported by
// the first Next.
func (l *Loader) Start(ctx context.Context, at Cursor, mem Memory) *Run {
	return start(ctx, l, at, mem, false, nil)
}

// Close ends a source that gives its samples once: samples that were not delivered are
// closed, if they are io.Closers, and the iterator is told to end. The error is a
// *StuckError if that is not done within Options.GracePeriod, because an iterator that
// waits on a channel is not woken; it also has the first failure of a sample's Close, an
// *Error. Close the Loader's Runs first. Later calls do nothing. A Loader of any other
// data owns nothing, and need not be closed.
func (l *Loader) Close() error {
	if l.once == nil {
		return nil
	}
	return l.once.close(l.options.GracePeriod)
}
