package loader

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// LastPolicy says what becomes of samples that do not fill the last batch.
//
//	        PyTorch                                  NVIDIA DALI
//	Keep    drop_last=False, without a sampler       LastBatchPolicy.PARTIAL
//	Drop    drop_last=True                           LastBatchPolicy.DROP
//	Pad     DistributedSampler's padding, by which   LastBatchPolicy.FILL
//	        the ranks get equally many samples
//	Exact   none                                     PARTIAL with pad_last_batch
type LastPolicy int

const (
	// Keep delivers a short last batch. It is for one rank: with several, the ranks
	// would make different numbers of steps.
	Keep LastPolicy = iota
	// Drop leaves out the samples beyond the last full global batch. With a
	// shuffled order they are other samples in every epoch.
	Drop
	// Pad fills the last global batch with samples from the beginning of the same
	// epoch's order. Filled.Valid tells the real ones from the padding.
	Pad
	// Exact delivers every sample exactly once, for evaluation: all ranks make
	// the same number of steps, the last of them short or even empty.
	Exact
)

// String is the policy's name.
func (p LastPolicy) String() string {
	return name(int(p), "LastPolicy", "Keep", "Drop", "Pad", "Exact")
}

// ErrorPolicy says what becomes of a sample that cannot be read.
type ErrorPolicy int

const (
	// Fail ends the run at the first sample, in order, that fails.
	Fail ErrorPolicy = iota
	// Substitute reads another sample in its place, chosen by the seed, the epoch
	// and the position, and lists it in Filled.Substituted. No position shifts, so
	// ranks, steps and resuming stay exact. It is for a Dataset. A Read that panics has failed
	// too; one that ends its goroutine by runtime.Goexit ends the run, since a test that calls
	// t.Fatal there is to end.
	Substitute
	// SkipFailed leaves the sample out, and the next one of the same shard takes its place.
	// Stats counts and lists what was left out. It is for a Stream, and implies
	// Options.Skips.
	SkipFailed
)

// String is the policy's name.
func (p ErrorPolicy) String() string {
	return name(int(p), "ErrorPolicy", "Fail", "Substitute", "SkipFailed")
}

func name(i int, kind string, names ...string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, i)
	}
	return names[i]
}

// Shard is one rank's part of the data: which of Count equal parts of every global batch
// it reads. The zero value is for a program with one rank.
type Shard struct {
	// Index is the rank, from 0.
	Index int
	// Count is the number of ranks. 0 means 1.
	Count int
}

// Options tunes a Loader. The zero value is ready to use.
type Options struct {
	// Shuffle gives every epoch its own order, a function of Seed, the epoch and
	// the number of samples alone. Without it samples come in the order of their index.
	Shuffle bool
	// Seed chooses the orders and the samples' random numbers.
	Seed uint64
	// Epochs is the number of epochs. 0 means that there is always another one, and of a
	// source that gives its samples once the one that it has. With a
	// number the run works ahead over the border between epochs; with 0 it begins an
	// epoch when asked for its first batch. A loop over the epochs should take the
	// number from Loader.Options and not state it again.
	Epochs int
	// Workers is the number of goroutines that read samples, at most 65536. 0 means Auto:
	// there are 32 or twice GOMAXPROCS at first, and where reads wait, for a disk or a network,
	// then as many as pay, from 1 to what the Budget allows. While the consumer waits for
	// batches, more are tried if those that there are spend their time in reads, and fewer if
	// they may read as much; what was decided, and why, is in Stats. Where reads compute
	// nothing is tried, and only
	// Budget.Cores workers always go on. The others pause when they have waited for a
	// processor for 100 µs, or with slow samples an eighth of what one takes, at most 2 ms,
	// and go on when processors are free. So the training loop and the
	// goroutines that wait for the device find a processor, and none is unused. Any other
	// number is used as it is.
	Workers int
	// Budget bounds what Workers: Auto takes.
	Budget Budget
	// BatchSizes changes the batch size as training goes on: that of New or NewStream holds
	// up to the first of them. They ascend by their Sample. Memory is for the largest. A Stream
	// needs Steps or Epochs 1, because nobody knows how many samples lie before a later epoch;
	// with several ranks Steps or Drop, since under Exact their last batches are unequal.
	BatchSizes []SizeFrom
	// Last says what becomes of samples that do not fill the last batch. With
	// several ranks it must be Drop, Exact or, for a Dataset, Pad; under Steps every batch is
	// full, and it has no meaning.
	Last LastPolicy
	// Shard is the part of every global batch that this loader reads.
	Shard Shard
	// OnError says what becomes of a sample that cannot be read.
	OnError ErrorPolicy
	// MaxSubstituted is how many samples of one epoch Substitute may replace on
	// this rank; one more ends the run. 0 means no limit. The count is part of the
	// Cursor, so that an epoch that is left and resumed has the same limit; see
	// State.Substituted for other processes.
	MaxSubstituted int
	// Exclude leaves out samples and steps, of a Dataset or a Stream. It is a list so that it
	// can grow: see Exclusion.
	Exclude []Exclusion
	// ReadTimeout is how long a Read of a Dataset, or the encode function of a Stream, may
	// take for a sample. Then its context is cancelled, and the sample has failed with a
	// *TimeoutError, without waiting for the call to return: nothing that it does late
	// reaches a batch. OnError says what becomes of it; a substitute has as much time again.
	// A late call that ignores its context goes on, also after Close: what it uses must be
	// there until it returns. More than 64 of them at once end a Run. Which samples are late
	// no seed decides. 0 means no limit; a limit costs each sample about two microseconds and
	// a copy of its bytes.
	ReadTimeout time.Duration
	// Skips says that the encode function of a Stream may return Skip for a sample that is
	// to be left out. Then each shard's own goroutine encodes its samples, since only then
	// the next one can take the place, and the workers copy them to their rows: one copy
	// more, and the shards encode in parallel, not the workers. Without it workers encode
	// samples where they belong, and an error that is Skip is a failure.
	Skips bool
	// MaxSkipped is how many samples of one epoch may be left out on this rank; one more
	// ends the run with a *SkipError. 0 means no limit. The count is part of the Cursor, as
	// that of MaxSubstituted is.
	MaxSkipped int
	// Steps is the number of steps of an epoch of a Stream, the same on every rank. Every
	// batch is full: a shard that has ended begins again with its next pass, and the epochs
	// cut one endless sequence, in which the next begins where the one before has ended. A
	// shard that gives nothing in a whole pass is left out from then on. Row.Epoch is the
	// shard's pass, and Row.Position counts on over the passes. 0 means that an epoch is one
	// pass over all shards.
	Steps int
	// Agree has the ranks of a Stream make equally many steps where Steps does not state
	// how many. It is called once before each step, in order, with the number of rows that
	// this rank has for it, 0 to the batch size, and returns the least and the most over all
	// ranks: an all-reduce, which every rank takes part in. Under Drop the epoch goes on
	// while the least is the batch size, under Exact while the most is above 0; then batches
	// may be short, and empty. With one rank it is not called.
	//
	// A rank whose run fails calls it a last time, with rows -1 and the failure, and what it
	// returns then has no meaning; failed is nil in all other calls. Where least is -1 the
	// other ranks end too, with ErrRankFailed. To have all of them tell why, send failed along
	// and return it as err. A worker's failure is known when the rank has agreed on steps
	// behind it, and other ranks may have made them; with Skips none is.
	//
	// ctx is cancelled when the Run is closed, in the last call after half of GracePeriod. A
	// rank that is closed without a failure calls it no more, and the others wait: close them
	// too, or end theirs by their context.
	Agree func(ctx context.Context, rows int, failed error) (least, most int, err error)
	// StallTimeout is how long the next batch may take before Next reports which
	// sample, or which stage, it hangs on. Time for which nobody waits in Next does not
	// count. 0 means no limit.
	StallTimeout time.Duration
	// GracePeriod is how long Close waits for a Read that does not return when its
	// context is cancelled, and for the Close of samples. 0 means 5 s.
	GracePeriod time.Duration
}

// validate reports every mistake in the options and in the batch size at once, each
// as an *OptionError.
func (o Options) validate(batchSize int) error {
	var wrong mistakes
	check := wrong.check
	check(batchSize >= 1 && batchSize <= maxBatch, "batchSize", batchSize, fmt.Sprintf("1 to %d", maxBatch))
	check(o.Epochs >= 0, "Epochs", o.Epochs, "0 (no stated number) or more")
	check(o.Workers >= 0 && o.Workers <= maxWorkers, "Workers", o.Workers, fmt.Sprintf("0 (Auto) to %d", maxWorkers))
	o.Budget.validate(&wrong)
	check(o.Last >= Keep && o.Last <= Exact, "Last", o.Last, "Keep, Drop, Pad or Exact")
	check(o.Shard.Count >= 0 && o.Shard.Count <= maxBatch, "Shard.Count", o.Shard.Count, fmt.Sprintf("0 (one rank) to %d", maxBatch))
	ranks := max(o.Shard.Count, 1)
	check(o.Shard.Index >= 0 && o.Shard.Index < ranks, "Shard.Index", o.Shard.Index, fmt.Sprintf("0 to %d", ranks-1))
	check(ranks == 1 || o.Last != Keep || o.Steps > 0, "Last", o.Last,
		fmt.Sprintf("Drop, Exact or, for a Dataset, Pad with %d ranks, which must make equally many steps", ranks))
	if batchSize >= 1 && batchSize <= maxBatch && o.Shard.Count <= maxBatch {
		check(batchSize <= maxBatch/ranks, "batchSize", batchSize, fmt.Sprintf("at most %d rows in the global batch over %d ranks", maxBatch, ranks))
	}
	check(o.OnError >= Fail && o.OnError <= SkipFailed, "OnError", o.OnError, "Fail, Substitute or SkipFailed")
	check(o.MaxSubstituted >= 0, "MaxSubstituted", o.MaxSubstituted, "0 (no limit) or more")
	check(o.MaxSubstituted <= 0 || o.OnError == Substitute, "MaxSubstituted", o.MaxSubstituted, "0 unless OnError is Substitute")
	check(o.ReadTimeout >= 0, "ReadTimeout", o.ReadTimeout, "0 (none) or more")
	check(o.MaxSkipped >= 0, "MaxSkipped", o.MaxSkipped, "0 (no limit) or more")
	check(o.MaxSkipped <= 0 || o.Skips || o.OnError == SkipFailed, "MaxSkipped", o.MaxSkipped, "0 unless Skips is set or OnError is SkipFailed")
	check(o.Steps >= 0, "Steps", o.Steps, "0 (one pass) or more")
	check(o.StallTimeout >= 0, "StallTimeout", o.StallTimeout, "0 (none) or more")
	check(o.GracePeriod >= 0, "GracePeriod", o.GracePeriod, "0 (5 s) or more")
	o.checkSizes(&wrong)
	return wrong.err()
}

// mistakes are what is found wrong, all of it.
type mistakes []error

// check adds an *OptionError unless ok.
func (m *mistakes) check(ok bool, option string, value any, want string) {
	if !ok {
		*m = append(*m, &OptionError{Option: option, Value: value, Want: want})
	}
}

// add adds err, if it is not nil.
func (m *mistakes) add(err error) {
	if err != nil {
		*m = append(*m, err)
	}
}

func (m mistakes) err() error { return errors.Join(m...) }

// withDefaults fills in what was left at zero, apart from Workers and their Budget.
func (o Options) withDefaults() Options {
	o.Shard.Count = max(o.Shard.Count, 1)
	o.Skips = o.Skips || o.OnError == SkipFailed
	if o.GracePeriod == 0 {
		o.GracePeriod = 5 * time.Second
	}
	return o
}
