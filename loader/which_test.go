package loader_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// joined is datasets one behind the other; in odd epochs each is read backwards.
type joined []numbers

func (d joined) Fields() []loader.Field { return numberFields }

func (d joined) Len() (n int) {
	for _, part := range d {
		n += part.n
	}
	return n
}

func (d joined) Parts() (parts []loader.Dataset) {
	for _, part := range d {
		parts = append(parts, part)
	}
	return parts
}

func (d joined) Part(epoch uint64, index int) (part, at int, pass uint64) {
	for part = range d {
		if index < d[part].n {
			if epoch%2 == 1 {
				index = d[part].n - 1 - index
			}
			return part, index, epoch
		}
		index -= d[part].n
	}
	return -1, 0, 0
}

func (d joined) Read(ctx context.Context, index int, row *loader.Row) error {
	part, at, _ := d.Part(uint64(row.Epoch()), index)
	return d[part].Read(ctx, at, row)
}

func (d numbers) Origin(index int) loader.Origin {
	return loader.Origin{File: cmp.Or(d.file, "numbers"), Record: int64(index), Offset: int64(8 * index)}
}

// which is all samples of a span.
func which(t require.TestingT, l *loader.Loader, s loader.Span) []loader.Sample {
	samples, err := l.Which(s)
	require.NoError(t, err)
	return slices.Collect(samples)
}

func TestWhichIsWhatIsDelivered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		o.Epochs = 3
		ds := joined{{n: n / 3}, {n: n - n/3}}
		var ranks [][]batch
		var l *loader.Loader
		for rank := range o.Shard.Count {
			o.Shard.Index = rank
			var err error
			l, err = loader.New(ds, batchSize, o)
			require.NoError(t, err)
			batches, err := readAll(t, l, loader.Cursor{}, 2)
			require.NoError(t, err)
			ranks = append(ranks, batches)
		}

		span, err := l.Span(l.StateAt(loader.Cursor{}), 0, len(ranks[0]))
		require.NoError(t, err)
		next, rows := 0, which(t, l, span)
		for step := range ranks[0] {
			for rank := range ranks {
				b := ranks[rank][step]
				for row := range b.filled.N {
					s := rows[next]
					next++
					require.Equal(t, loader.Sample{
						Step: step, Epoch: b.filled.Epoch, Batch: b.filled.Batch, Rank: rank, Row: row,
						Position: b.positions[row], Padding: row >= b.filled.Valid,
						Index: s.Index, Excluded: -1, Leaf: s.Leaf, Origin: ds[0].Origin(int(b.indices[row])),
					}, s)
					source, at, _ := ds.Part(uint64(s.Epoch), s.Index)
					require.Equal(t, loader.Leaf{Source: source, Index: at}, s.Leaf)
					require.EqualValues(t, b.indices[row], at)
				}
			}
		}
		require.Len(t, rows, next)

		// From any state, any of the steps behind it.
		stop := rapid.IntRange(0, len(ranks[0])-1).Draw(t, "stop")
		from := rapid.IntRange(0, len(ranks[0])-1-stop).Draw(t, "from")
		to := rapid.IntRange(from, len(ranks[0])-1-stop).Draw(t, "to")
		span, err = l.Span(l.StateAt(ranks[0][stop].filled.After), from, to)
		require.NoError(t, err)
		var want []loader.Sample
		for _, s := range rows {
			if s.Step -= stop + 1 + from; s.Step >= 0 && s.Step < to-from {
				want = append(want, s)
			}
		}
		require.Equal(t, want, which(t, l, span))
	})
}

func TestSpansOutsideTheData(t *testing.T) {
	l, err := loader.New(numbers{n: 10}, 4, loader.Options{Epochs: 2, Last: loader.Drop})
	require.NoError(t, err)
	begin := l.StateAt(loader.Cursor{})
	end, err := l.Span(begin, 4, 4)
	require.NoError(t, err)
	require.Empty(t, which(t, l, end), "the end of the data is a place")

	for name, steps := range map[string][2]int{
		"negative": {-1, 1}, "interchanged": {2, 1}, "past the end": {3, 5}, "far past the end": {math.MaxInt - 1, math.MaxInt},
	} {
		_, err := l.Span(begin, steps[0], steps[1])
		require.Error(t, err, name)
	}
	other := begin
	other.Seed++
	var wrong *loader.StateError
	_, err = l.Span(other, 0, 1)
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Seed", wrong.Field)

	for name, span := range map[string]loader.Span{
		"backwards":      {From: loader.Cursor{Epoch: 1}, To: loader.Cursor{Position: 4}},
		"negative":       {From: loader.Cursor{Position: -1}},
		"past the epoch": {To: loader.Cursor{Position: 11}},
		"past the data":  {To: loader.Cursor{Epoch: 2, Position: 1}},
	} {
		_, err := l.Which(span)
		require.ErrorAs(t, err, &wrong, name)
	}

	endless, err := loader.New(numbers{n: 10}, 4, loader.Options{})
	require.NoError(t, err)
	span, err := endless.Span(endless.StateAt(loader.Cursor{}), 3_000_000, 3_000_001)
	require.NoError(t, err)
	require.Equal(t, loader.Cursor{Epoch: 1_000_000}, span.From, "worked out, and not walked to")
	_, err = endless.Span(endless.StateAt(loader.Cursor{}), math.MaxInt-1, math.MaxInt)
	require.ErrorAs(t, err, &wrong)
}

func TestWhichNeedsRandomAccess(t *testing.T) {
	l := newStream(t, upTo(3), 2, loader.Options{})
	var wrong *loader.OptionError
	_, err := l.Which(loader.Span{})
	require.ErrorAs(t, err, &wrong)
	_, err = l.Span(l.StateAt(loader.Cursor{}), 0, 1)
	require.ErrorAs(t, err, &wrong)
	require.Panics(t, func() { l.Candidates(0, 0) })
}

func TestCandidatesAreWhatSubstituteTries(t *testing.T) {
	const n = 20
	bad := func(i int) bool { return i%2 == 0 }
	l, err := loader.New(numbers{n: n, before: func(_ context.Context, i int, _ *loader.Row) error {
		if bad(i) {
			return errors.New("unreadable")
		}
		return nil
	}}, 4, loader.Options{Seed: 3, Shuffle: true, Epochs: 1, OnError: loader.Substitute})
	require.NoError(t, err)
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	found := 0
	for _, b := range batches {
		for _, s := range b.filled.Substituted {
			found++
			tried := slices.Collect(l.Candidates(b.filled.Epoch, s.Position))
			require.Equal(t, s.Substitute, tried[s.Attempts-1])
			for _, earlier := range tried[:s.Attempts-1] {
				require.True(t, bad(earlier))
			}
		}
	}
	require.Equal(t, n/2, found)
}

// unplaced is a dataset whose samples fail, and that doesn't know where they lie.
type unplaced struct{ numbers }

func (unplaced) Origin(int) loader.Origin { panic("no idea") }

// Where a sample comes from is asked when it fails; who can't tell does not hide the failure.
func TestAnOriginThatPanicsHidesNoFailure(t *testing.T) {
	broken := errors.New("broken")
	l, err := loader.New(unplaced{numbers{n: 4, before: func(context.Context, int, *loader.Row) error { return broken }}}, 2, loader.Options{})
	require.NoError(t, err)
	_, err = readAll(t, l, loader.Cursor{}, 1)
	require.ErrorIs(t, err, broken)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.Zero(t, failure.Origin)
}
