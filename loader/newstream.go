package loader

import (
	"errors"
	"fmt"
	"slices"
)

// NewStream makes a Loader of a Stream. The shards are divided among the ranks: shard i
// belongs to rank i modulo their number, which must be no more than that of the shards. A
// rank's order is that of its shards' samples by position, and the n-th sample of shard i has
// position n·Shards + i; so the shards give one sample each in turn, and one that has ended
// is left out from then on.
//
// Several ranks need Options.Steps or Options.Agree, so that all make equally many steps.
// Shuffle, Pad and Substitute need random access, and are refused.
func NewStream(s Stream, batchSize int, o Options) (*Loader, error) {
	if err := required("Stream", s, "a stream"); err != nil {
		return nil, err
	}
	l, err := newLoader(s.Fields(), batchSize, o)
	shards := s.Shards()
	err = errors.Join(err, incomplete(s), o.inOrder("a Stream"), o.sharded(shards, batchSize))
	if err != nil {
		return nil, err
	}
	l.stream, l.shards, l.merger = s, shards, newMerger
	l.split.samples, l.split.fixed = maxSamples, int64(o.Steps)
	l.fingerprint = fingerprint(s, l.layout)
	if k, ok := s.(Keeper); ok {
		l.kept = slices.Clone(k.Kept())
	}
	if l.single, err = NewLayout(s.Fields(), 1); err != nil {
		return nil, err
	}
	if err := l.excludeRecords(); err != nil {
		return nil, err
	}
	return l, nil
}

// sharded reports what a Stream of so many shards can't have.
func (o Options) sharded(shards, batchSize int) error {
	var errs []error
	refuse := func(bad bool, option string, value any, want string) {
		if bad {
			errs = append(errs, &OptionError{Option: option, Value: value, Want: want})
		}
	}
	refuse(shards < 1 || shards > maxShards, "Shards", shards, fmt.Sprintf("1 to %d", maxShards))
	refuse(shards >= 1 && o.Shard.Count > shards, "Shard.Count", o.Shard.Count,
		fmt.Sprintf("at most %d, the number of shards: a shard is read by one rank", shards))
	refuse(o.Shard.Count > 1 && o.Steps == 0 && o.Agree == nil, "Steps", o.Steps,
		fmt.Sprintf("1 or more, or else Agree, with %d ranks, which must make equally many steps", o.Shard.Count))
	refuse(len(o.BatchSizes) > 0 && o.Steps == 0 && o.Epochs != 1, "BatchSizes", o.BatchSizes,
		"empty, or Steps 1 or more, or Epochs 1: nobody knows how many samples lie before a later epoch")
	refuse(len(o.BatchSizes) > 0 && o.uneven(), "BatchSizes", o.BatchSizes, "empty, or Steps 1 or more, or Last Drop: "+unevenRanks)
	_, largest := o.scheduled(batchSize)
	most := int64(maxSamples) / int64(max(largest, 1)) / int64(max(o.Shard.Count, 1))
	refuse(int64(o.Steps) > most, "Steps", o.Steps, fmt.Sprintf("at most %d", most))
	return errors.Join(errs...)
}

// uneven reports whether the ranks of a Stream may have given unequally many samples behind a
// step.
func (o Options) uneven() bool { return o.Shard.Count > 1 && o.Steps == 0 && o.Last != Drop }

const unevenRanks = "the last batches of ranks are of unequal sizes under Exact, and have no common position"

// inOrder reports options that need random access.
func (o Options) inOrder(data string) error {
	var errs []error
	refuse := func(bad bool, option string, value any, want string) {
		if bad {
			errs = append(errs, &OptionError{Option: option, Value: value, Want: want + ": " + data + " has no random access"})
		}
	}
	refuse(o.Shuffle, "Shuffle", o.Shuffle, "false")
	refuse(o.Last == Pad, "Last", o.Last, "Keep, Drop or Exact")
	refuse(o.OnError == Substitute, "OnError", o.OnError, "another policy")
	return errors.Join(errs...)
}

// forStreams reports options that only a Stream can have.
func (o Options) forStreams(data string) error {
	var errs []error
	refuse := func(bad bool, option string, value any, want string) {
		if bad {
			errs = append(errs, &OptionError{Option: option, Value: value, Want: want + ": it is for NewStream, and this is " + data})
		}
	}
	refuse(o.OnError == SkipFailed, "OnError", o.OnError, "another policy")
	refuse(o.Skips, "Skips", o.Skips, "false")
	refuse(o.Steps > 0, "Steps", o.Steps, "0")
	refuse(o.Agree != nil, "Agree", "a function", "nil")
	return errors.Join(errs...)
}

// Shards is the number of a Stream's shards that this rank reads, 0 of other data. Each Run
// has a goroutine for each of them.
func (l *Loader) Shards() int {
	ranks := int(l.split.ranks)
	return (l.shards + ranks - 1 - int(l.split.rank)) / ranks
}
