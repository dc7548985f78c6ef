package compose

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Filter has the samples of ds for whose index keep returns true, in their order. keep is
// asked once for each, before Filter returns.
func Filter(ds loader.Dataset, keep func(i int) bool) (loader.Dataset, error) {
	p, err := newPart("Filter: ds", ds)
	if keep == nil {
		err = errors.Join(err, mistake("Filter: keep", "nil", "a function"))
	}
	if err != nil {
		return nil, err
	}
	l := newList(p.length, 0)
	for i := range p.length {
		if keep(i) {
			l.add(i)
		}
	}
	return subset(kindSubset, p, l), nil
}

// FilterRead has the samples of ds for which keep returns true, in their order. It reads
// each sample once before it returns, several at once, and lends it to keep with its
// index; so keep is called by several goroutines. A sample that can't be read, and an error
// or a panic of keep, is a *loader.Error with the sample's index. It is an error too if
// samples of ds are at other indices in every epoch: shuffle what is filtered, instead of
// filtering what is shuffled.
func FilterRead(ctx context.Context, ds loader.Dataset, keep func(ctx context.Context, i int, sample *loader.Row) (bool, error)) (loader.Dataset, error) {
	p, err := newPart("FilterRead: ds", ds)
	if keep == nil {
		err = errors.Join(err, mistake("FilterRead: keep", "nil", "a function"))
	}
	if err := errors.Join(err, p.steady("FilterRead: ds")); err != nil {
		return nil, err
	}
	l := newList(p.length, 0)
	verdicts := &judged{part: p, keep: keep, scratches: scratches{fields: p.fields}}
	err = readThrough(ctx, verdicts, p.length, func(first int64, ld *loader.Loader, batch loader.Filled) {
		for row, kept := range ld.Layout().Rows(0, batch) {
			if kept != 0 {
				l.add(int(first) + row)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return subset(kindSubset, p, l), nil
}

// steady is an error if samples of the part are at other indices in every pass.
func (p *part) steady(parameter string) error {
	if p.composed != nil && p.composed.varies() {
		return mistake(parameter, "a dataset that is in another order in every epoch", "one whose samples stay at their indices")
	}
	return nil
}

// judged is a dataset of verdicts on the samples of a part.
type judged struct {
	part      part
	keep      func(ctx context.Context, i int, sample *loader.Row) (bool, error)
	scratches scratches
}

func (j *judged) Len() int { return j.part.length }

func (j *judged) Fields() []loader.Field { return []loader.Field{{Name: "keep", DType: dtype.Uint8}} }

func (j *judged) Read(ctx context.Context, index int, row *loader.Row) error {
	s, err := j.scratches.get()
	if err != nil {
		return err
	}
	sample, err := j.part.readTo(ctx, s, 0, index, row)
	if err != nil {
		return err
	}
	kept, err := j.keep(ctx, index, sample)
	if err != nil {
		return err
	}
	j.scratches.put(s)
	verdict := byte(0)
	if kept {
		verdict = 1
	}
	row.Bytes("keep")[0] = verdict
	return nil
}

// readThrough reads all samples of a dataset, several at once, and lends each batch of them
// to take, in order. The first number counts the samples before it.
func readThrough(ctx context.Context, ds loader.Dataset, samples int, take func(first int64, ld *loader.Loader, batch loader.Filled)) (err error) {
	if samples == 0 {
		return nil
	}
	const batchSize, slots = 256, 8
	ld, err := loader.New(ds, min(batchSize, samples), loader.Options{Epochs: 1})
	if err != nil {
		return err
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), slots)
	if err != nil {
		return err
	}
	run := ld.Start(ctx, loader.Cursor{}, mem)
	defer func() { err = errors.Join(err, run.Close()) }()
	for {
		batch, err := run.Next(ctx)
		switch {
		case errors.Is(err, loader.ErrEpochEnd), errors.Is(err, loader.ErrEnd):
			return nil
		case err != nil:
			return fmt.Errorf("compose: %w", err)
		}
		take(batch.Position, ld, batch)
		mem.Put(batch.Slot)
	}
}
