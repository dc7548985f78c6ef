package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// traced is a shard that Trace reads.
type traced struct {
	loader  *Loader
	number  int
	from    ShardMark // where the pass is to be opened
	reader  ShardReader
	given   int64 // samples, as ShardMark.Samples counts them
	before  int64 // given at the beginning of the pass
	failed  int   // how often in a row the reader has failed
	ended   bool
	scratch *scratch // where samples are encoded that may be left out
}

func newTraced(l *Loader, from ShardMark) *traced {
	return &traced{loader: l, number: from.Shard, from: from, given: from.Samples, before: from.Samples, ended: from.Ended}
}

// position is that of the next sample.
func (t *traced) position() int64 { return position(t.given, t.number, t.loader.shards) }

// nextTraced is what comes next of a rank's shards: a sample, a flush, or the end of all.
func nextTraced(ctx context.Context, shards []*traced) (s Sample, outcome kind, err error) {
	for {
		var due *traced
		for _, t := range shards {
			if !t.ended && (due == nil || t.position() < due.position()) {
				due = t
			}
		}
		if due == nil {
			return s, anEnd, nil
		}
		if s, outcome, err = due.next(ctx); err != nil || outcome != anEnd {
			return s, outcome, err
		}
	}
}

// next is the shard's next sample, a flush, or its end.
func (t *traced) next(ctx context.Context) (s Sample, outcome kind, err error) {
	for {
		if ctx.Err() != nil {
			return s, anEnd, context.Cause(ctx)
		}
		if t.reader == nil {
			if err := t.open(ctx); err != nil {
				return s, anEnd, t.failure(err)
			}
		}
		sample, ok, err := t.reader.Next(ctx)
		switch {
		case err == Flush:
			return s, aFlush, nil
		case err != nil:
			if t.failed++; t.failed >= maxFailures || t.loader.options.OnError != SkipFailed || hopeless(err) {
				return s, anEnd, t.failure(err)
			}
			continue
		case !ok:
			if another, err := t.endPass(); err != nil || !another {
				return s, anEnd, err
			}
			continue
		case sample == nil:
			return s, anEnd, t.failure(errNoEncoder)
		}
		t.failed = 0
		s = Sample{Shard: t.number, Pass: t.from.Pass, Position: t.position(), Origin: originOf(sample)}
		if kept, err := t.keeps(ctx, sample); err != nil {
			return s, anEnd, t.failure(err)
		} else if kept {
			t.given++
			return s, aSample, nil
		}
	}
}

// open opens the pass, and passes over what was delivered of it.
func (t *traced) open(ctx context.Context) error {
	l := t.loader
	reader, err := l.stream.Open(ctx, Pass{Epoch: t.from.Pass, Seed: l.options.Seed}, t.number, t.from.Mark)
	if err == nil && isNil(reader) {
		err = errNoReader
	}
	if err != nil {
		return err
	}
	t.reader = reader
	for n := int64(0); n < t.from.Leave; {
		sample, ok, err := reader.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == Flush:
			continue
		case err != nil && l.options.OnError != SkipFailed:
			return err
		case err == nil && !ok:
			return fmt.Errorf("the shard ended with record %d where it is to go on behind %d", n, t.from.Leave)
		case err == nil && sample != nil:
			if err := dropped(sample); err != nil {
				return err
			}
		}
		n++
	}
	return nil
}

// endPass ends the pass, and reports whether another follows.
func (t *traced) endPass() (another bool, err error) {
	err = t.close()
	whole := t.from.Mark == nil && t.from.Leave == 0
	if t.loader.split.fixed == 0 || whole && t.given == t.before {
		t.ended = true
		return false, err
	}
	t.from, t.before = ShardMark{Shard: t.number, Pass: t.from.Pass + 1}, t.given
	return err == nil, err
}

// keeps ends a sample, and reports whether a Run would have it in a batch.
func (t *traced) keeps(ctx context.Context, sample Encoder) (bool, error) {
	o := &t.loader.options
	if excluded := t.loader.excluded.record(sample); excluded || !o.Skips {
		return !excluded, dropped(sample)
	}
	if t.scratch == nil {
		t.scratch = newScratch(t.loader)
		t.scratch.row.mem = t.scratch.get().row.mem
	}
	row := &t.scratch.row
	row.epoch = t.from.Pass
	row.move(0, t.position())
	err := encodeTraced(ctx, sample, row)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case !hopeless(err) && (o.OnError == SkipFailed || errors.Is(err, Skip)):
		return false, nil
	}
	return false, err
}

// encodeTraced encodes a sample. A panic is its failure.
func encodeTraced(ctx context.Context, sample Encoder, row *Row) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = caught(p)
		}
	}()
	if err = sample.Encode(ctx, row); err == nil {
		err = row.unwritten()
	}
	return err
}

// dropped ends a sample that is not encoded.
func dropped(sample Encoder) error {
	if c, ok := sample.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// failure is an error of the shard at its next sample.
func (t *traced) failure(err error) error {
	at := t.position()
	return &Error{
		Epoch: t.from.Pass, Batch: t.loader.split.number(Cursor{Position: at}), Sample: int(at), Position: at,
		Shard: t.number, Origin: originIn(err), Stage: StageIterate, Err: err,
	}
}

func (t *traced) close() error {
	if t.reader == nil {
		return nil
	}
	reader := t.reader
	t.reader = nil
	return reader.Close()
}
