package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/loader/internal/mix"
)

// Replay makes a Loader that gives k batches of ld for ever, without end of epoch, so that
// a loop over it shows how fast the steps are if reading costs nothing:
//
//	fast, err := loader.Replay(ctx, ld, 8)
//	pf, err := prefetch.New(compute, fast, prefetch.Options{})
//
// Replay reads the batches from ld's beginning, and returns what goes wrong with them. If
// its first epoch has fewer, these are all. It holds them in memory, Layout.Size bytes
// each.
//
// A slot of the pipeline is filled once, by a copy of the batch whose turn it is, and then
// delivered with what it holds: from there on no byte is read or copied on the host, and
// the workers sleep. So it depends on the slots which of the batches a step gets. What is
// measured is all behind the loader: the pipeline itself, copies to the device, transforms
// and the step. Only whoever changes host batches in place sees the change again. With -tags
// invariants, where others change memory that nobody should read, slots are filled each
// time.
//
// Every batch counts as a full one in positions. The fields are those of ld, and of its
// options StallTimeout and GracePeriod; all others are as if they were not given. Where
// ranks agree on each step (Options.Agree), all of them call Replay.
func Replay(ctx context.Context, ld *Loader, k int) (*Loader, error) {
	if err := required("Loader", ld, "a loader"); err != nil {
		return nil, err
	}
	const most = 1 << 16
	if limit := min(most, maxHeap/max(1, ld.layout.bytes)); k < 1 || int64(k) > limit {
		return nil, &OptionError{Option: "k", Value: k, Want: fmt.Sprintf("1 to %d batches", limit)}
	}
	batches, err := record(ctx, ld, k)
	if err != nil {
		return nil, err
	}
	return &Loader{
		options: Options{
			Workers: 1, Shard: Shard{Count: 1},
			StallTimeout: ld.options.StallTimeout, GracePeriod: ld.options.GracePeriod,
		},
		staff:       staff{1, 1, 1},
		layout:      ld.layout,
		split:       plan{split: split{samples: maxSamples, batch: int64(ld.layout.batch), ranks: 1}},
		fields:      ld.fields,
		fingerprint: mix.Hash(ld.fingerprint, uint64(k)),
		replay:      batches,
	}, nil
}

// record reads the first k batches of an epoch into memory.
func record(ctx context.Context, ld *Loader, k int) (batches []Filled, err error) {
	memory, err := NewHeap(ld.layout.bytes, k)
	if err != nil {
		return nil, err
	}
	run := ld.Start(ctx, Cursor{}, memory)
	defer func() { err = errors.Join(err, run.Close()) }()
	for len(batches) < k {
		b, err := run.Next(ctx)
		switch {
		case (err == ErrEpochEnd || err == ErrEnd) && len(batches) > 0:
			return batches, nil
		case err == ErrEpochEnd || err == ErrEnd:
			return nil, ErrNoSamples
		case err != nil:
			return nil, err
		}
		b.Substituted, b.extents = nil, slices.Clone(b.extents) // which were borrowed
		batches = append(batches, b)
	}
	return batches, nil
}

// again opens batches that were read before, for ever. It reports whether the run goes on.
func (d *dispatcher) again(ctx context.Context, at Cursor) bool {
	r := d.run
	held := make(map[int]*Filled) // by slot ID: what it was filled with
	for turn := 0; at.Position <= maxSamples-int64(r.loader.layout.batch); turn++ {
		b := d.open(ctx, Filled{Epoch: at.Epoch, Batch: r.loader.split.number(at), Position: at.Position, After: at})
		if b == nil {
			return false
		}
		from := held[b.slot.ID]
		if from == nil || poisonRows {
			from = &r.loader.replay[turn%len(r.loader.replay)]
			copy(b.slot.Bytes[:r.loader.layout.bytes], from.Slot.Bytes)
			held[b.slot.ID] = from
		}
		at.Position += int64(r.loader.layout.batch)
		b.filled.N, b.filled.Valid, b.filled.Padding, b.filled.extents = from.N, from.Valid, from.Padding, from.extents
		b.filled.After.Position = at.Position
		b.lengths = nil // its rows lie as they shall
		b.written.Store(int64(from.N))
		r.lineup.hand(b, 0, true)
		d.handed(b, 0)
	}
	return true
}
