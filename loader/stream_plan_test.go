package loader_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// planned is a stream with batch sizes that change, steps that are jumped over and records that
// are left out, and what must come of it: the reference.
type planned struct {
	cut     *cut
	ranks   int
	options loader.Options
	globals []loader.SizeFrom // of all ranks together; the first from sample 0 on
	jumped  []int             // numbers of steps, counted over all epochs as if none was
	origins map[int]bool      // numbers within a shard that are left out of all
}

// next is the next number of a shard, -1 if it has no other. place counts its records over all
// passes.
func (p *planned) next(shard int, place *int, epoch int) int {
	size := p.cut.sizes[shard]
	for pass, from := epoch, *place; ; {
		if p.options.Steps > 0 {
			if size == 0 || *place-from > 2*size {
				return -1
			}
			pass = *place / size
		} else if *place == size {
			return -1
		}
		n := *place
		if *place++; p.options.Steps > 0 {
			n %= size
		}
		if !p.origins[n] {
			return numberOf(pass, shard, n)
		}
	}
}

// steps are the numbers of each step and rank, over all epochs.
func (p *planned) steps() (steps [][][]int64) {
	shards := len(p.cut.sizes)
	places, samples, number := make([]int, shards), 0, 0
	given := make([]int, shards)
	for epoch := range p.options.Epochs {
		if p.options.Steps == 0 {
			places, given = make([]int, shards), make([]int, shards)
		}
		for made := 0; p.options.Steps == 0 || made < p.options.Steps; made++ {
			global := int64(0)
			for _, s := range p.globals {
				if s.Sample <= int64(samples) {
					global = int64(s.BatchSize)
				}
			}
			step := make([][]int64, p.ranks)
			least := int(global)
			for rank := range step {
				ended := make([]bool, shards)
				for len(step[rank]) < int(global)/p.ranks {
					due := -1
					for i := rank; i < shards; i += p.ranks {
						if !ended[i] && (due < 0 || given[i] < given[due]) {
							due = i
						}
					}
					if due < 0 {
						break
					}
					n := p.next(due, &places[due], epoch)
					if n < 0 {
						ended[due] = true
						continue
					}
					given[due]++
					step[rank] = append(step[rank], int64(n))
				}
				least = min(least, len(step[rank]))
			}
			if p.options.Steps == 0 && (p.options.Last == loader.Drop && least < int(global)/p.ranks ||
				!slices.ContainsFunc(step, func(rows []int64) bool { return len(rows) > 0 })) {
				break
			}
			samples += int(global)
			if !slices.Contains(p.jumped, number) {
				steps = append(steps, step)
			}
			number++
		}
	}
	return steps
}

func drawPlanned(t *rapid.T) *planned {
	p := &planned{origins: map[int]bool{}}
	shards := rapid.SampledFrom([]int{2, 4, 6}).Draw(t, "shards")
	p.cut = &cut{sizes: make([]int, shards), every: rapid.IntRange(0, 3).Draw(t, "every")}
	for i := range p.cut.sizes {
		p.cut.sizes[i] = rapid.IntRange(3, 30).Draw(t, "size")
	}
	p.ranks = rapid.IntRange(1, 2).Draw(t, "ranks")
	for range rapid.IntRange(0, 2).Draw(t, "left out") {
		p.origins[rapid.IntRange(0, 1).Draw(t, "record")] = true
	}
	p.options = loader.Options{Epochs: 1, Seed: 5, Last: loader.Exact, Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
	p.options.Skips = rapid.Bool().Draw(t, "skips")
	if rapid.Bool().Draw(t, "steps") {
		p.options.Steps = rapid.IntRange(1, 6).Draw(t, "steps an epoch")
		p.options.Epochs = rapid.IntRange(1, 3).Draw(t, "epochs")
	} else if rapid.Bool().Draw(t, "drop") {
		p.options.Last = loader.Drop
	}
	sizes := 4
	if p.uneven() {
		sizes = 1
	}
	sample := int64(0)
	for range rapid.IntRange(1, sizes).Draw(t, "batch sizes") {
		p.globals = append(p.globals, loader.SizeFrom{Sample: sample, BatchSize: 2 * rapid.IntRange(1, 4).Draw(t, "global batch")})
		sample += int64(rapid.IntRange(1, 30).Draw(t, "samples of this size"))
	}
	return p
}

// uneven reports whether the last steps have no place that all ranks agree on.
func (p *planned) uneven() bool {
	return p.ranks > 1 && p.options.Steps == 0 && p.options.Last != loader.Drop
}

// loaders are those of all ranks. Agree is theirs together.
func (p *planned) loaders(t require.TestingT, ranks int) (all []*loader.Loader) {
	v := newVote(ranks)
	o := p.options
	o.BatchSizes = nil
	for _, s := range p.globals[1:] {
		o.BatchSizes = append(o.BatchSizes, loader.SizeFrom{Sample: s.Sample, BatchSize: s.BatchSize / ranks})
	}
	for rank := range ranks {
		o.Shard = loader.Shard{Index: rank, Count: ranks}
		if o.Steps == 0 && ranks > 1 {
			o.Agree = v.agree
		}
		all = append(all, newCut(t, p.cut, p.globals[0].BatchSize/ranks, o))
	}
	return all
}

func readRanks(t require.TestingT, all []*loader.Loader, at loader.Cursor) (steps [][]step, err error) {
	steps, errs := make([][]step, len(all)), make([]error, len(all))
	done := make(chan struct{})
	for rank, l := range all {
		go func() {
			defer func() { done <- struct{}{} }()
			steps[rank], errs[rank] = readStates(t, l, at, 3)
		}()
	}
	for range all {
		<-done
	}
	return steps, errors.Join(errs...)
}

// rowsOf are the samples by step and rank.
func rowsOf(steps [][]step) (all [][][]int64) {
	for i := range steps[0] {
		var row [][]int64
		for _, rank := range steps {
			row = append(row, append([]int64(nil), rank[i].indices...))
		}
		all = append(all, row)
	}
	return all
}

// Batch sizes change, records are left out and steps are jumped over, on all ranks alike; from
// each place another number of ranks goes on to the same samples, and what Trace tells is what
// Runs read.
func TestThePlanOfAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlanned(t)
		for n := range p.origins {
			var origins []loader.Origin
			for shard := range p.cut.sizes {
				origins = append(origins, (&aNumber{number: numberOf(0, shard, n)}).Origin())
			}
			p.options.Exclude = append(p.options.Exclude, loader.Exclusion{Origins: origins})
		}
		want := p.steps()
		all := p.loaders(t, p.ranks)
		got, err := readRanks(t, all, loader.Cursor{})
		if len(want) == 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, rowsOf(got))

		// The steps of a span are jumped over.
		first := rapid.IntRange(0, len(want)).Draw(t, "first jumped")
		last := min(first+rapid.IntRange(1, 3).Draw(t, "jumped"), len(want))
		place := func(step int) loader.Cursor {
			if step == 0 {
				return loader.Cursor{}
			}
			s := got[0][step-1].state
			return loader.Cursor{Epoch: s.Epoch, Position: s.Position}
		}
		if span := (loader.Span{From: place(first), To: place(last)}); first < last && !p.uneven() {
			for n := first; n < last; n++ {
				p.jumped = append(p.jumped, n)
			}
			p.options.Exclude = append(p.options.Exclude, loader.Exclusion{Steps: []loader.Span{span}})
			want = p.steps()
			if p.options.Steps > 0 && emptied(p, len(got[0])) || len(want) == 0 {
				return
			}
			all = p.loaders(t, p.ranks)
			got, err = readRanks(t, all, loader.Cursor{})
			require.NoError(t, err)
			require.Equal(t, want, rowsOf(got))
		}

		stop := rapid.IntRange(0, len(want)-1).Draw(t, "stop")
		var states []loader.State
		for _, rank := range got {
			states = append(states, rank[stop].state)
		}
		state, err := loader.MergeStates(states...)
		require.NoError(t, err)
		requireTraced(t, all[0], state, want[stop+1:])
		ranks := p.ranks
		if p.options.Steps > 0 {
			ranks = rapid.IntRange(1, 2).Draw(t, "other ranks")
		}
		p.options.Workers = rapid.IntRange(1, 3).Draw(t, "other workers")
		rest, err := readRanks(t, p.loaders(t, ranks), state.Cursor())
		require.NoError(t, err)
		for i, step := range rowsOf(rest) {
			if ranks == p.ranks {
				require.Equal(t, want[stop+1+i], step)
			} else {
				require.ElementsMatch(t, slices.Concat(want[stop+1+i]...), slices.Concat(step...))
			}
		}
		require.Len(t, rest[0], len(want)-stop-1)
		require.Equal(t, p.cut.opened.Load(), p.cut.closed.Load())
	})
}

// emptied reports whether an epoch of so many steps in all has none left.
func emptied(p *planned, steps int) bool {
	for from := 0; from < steps; from += p.options.Steps {
		left := p.options.Steps
		for _, n := range p.jumped {
			if n/p.options.Steps == from/p.options.Steps {
				left--
			}
		}
		if left == 0 {
			return true
		}
	}
	return false
}

func requireTraced(t require.TestingT, l *loader.Loader, from loader.State, want [][][]int64) {
	got := make([][][]int64, len(want))
	for s, err := range l.Trace(context.Background(), from, 0, len(want)+1) {
		require.NoError(t, err)
		require.Less(t, s.Step, len(want))
		if got[s.Step] == nil {
			got[s.Step] = make([][]int64, len(want[s.Step]))
		}
		require.Len(t, got[s.Step][s.Rank], s.Row)
		require.Equal(t, shardNames[s.Shard], s.Origin.File)
		got[s.Step][s.Rank] = append(got[s.Step][s.Rank], int64(numberOf(s.Pass, s.Shard, int(s.Origin.Record))))
	}
	require.Equal(t, want, got)
}

// Records that fail, or that encode leaves out, are in no step that Trace tells, and neither
// are those of an excluded file.
func TestTraceLeavesOutWhatRunsDo(t *testing.T) {
	for _, steps := range []int{0, 7} {
		c := holed([]int{40, 0, 33, 12}, 3)
		o := loader.Options{Epochs: 2, Steps: steps, OnError: loader.SkipFailed, Exclude: []loader.Exclusion{{Files: []string{"shard-3"}}}}
		l := newCut(t, c, 3, o)
		all, err := readStates(t, l, loader.Cursor{}, 3)
		require.NoError(t, err)
		want := rowsOf([][]step{all})
		require.NotContains(t, slices.Concat(slices.Concat(want...)...), int64(numberOf(0, 3, 0)))
		requireTraced(t, l, l.StateAt(loader.Cursor{}), want)
		for i, s := range all {
			requireTraced(t, l, s.state, want[i+1:])
		}
		require.Equal(t, c.opened.Load(), c.closed.Load())
	}
}

func TestTraceEndsWithItsError(t *testing.T) {
	trace := func(l *loader.Loader, s loader.State, from, to int) (samples int, err error) {
		for _, err := range l.Trace(context.Background(), s, from, to) {
			if err != nil {
				return samples, err
			}
			samples++
		}
		return samples, nil
	}
	c := &cut{sizes: []int{9, 9}, every: 1}
	l := newCut(t, c, 4, loader.Options{Epochs: 1})
	begin := l.StateAt(loader.Cursor{})
	n, err := trace(l, begin, 1, 3)
	require.NoError(t, err)
	require.Equal(t, 8, n)
	_, err = trace(l, begin, 2, 1)
	require.Equal(t, []string{"Trace"}, mistakes(t, err))
	_, err = trace(newNumbers(t, numbers{n: 10}, 2, loader.Options{}), begin, 0, 1)
	require.Equal(t, []string{"Trace"}, mistakes(t, err))
	var state *loader.StateError
	_, err = trace(l, loader.State{}, 0, 1)
	require.ErrorAs(t, err, &state)

	c.next = func(_ context.Context, _ loader.Pass, shard, n int) (loader.Encoder, bool, error) {
		if shard == 1 && n == 3 {
			return nil, true, errBad
		}
		return nil, true, nil
	}
	n, err = trace(l, begin, 0, 3)
	var failure *loader.Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, errBad)
	require.Equal(t, 1, failure.Shard)
	require.Equal(t, int64(7), failure.Position)
	require.Equal(t, 4, n, "the step before it")

	for range l.Trace(context.Background(), begin, 0, 1) {
		break
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range l.Trace(gone, begin, 0, 1) {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, c.opened.Load(), c.closed.Load())
}

// The number of steps and samples is known under Steps, whatever the batch sizes.
func TestTheStepsOfAStreamAreKnown(t *testing.T) {
	c := &cut{sizes: []int{9, 9}, every: 1}
	o := loader.Options{Steps: 3, BatchSizes: []loader.SizeFrom{{Sample: 4, BatchSize: 5}, {Sample: 10, BatchSize: 1}}}
	l := newCut(t, c, 2, o) // 2 2 5, 5 1 1, 1 1 1
	samples, known := l.Samples()
	require.True(t, known)
	require.Equal(t, int64(9), samples)
	for _, at := range []struct {
		at   loader.Cursor
		left int
	}{
		{loader.Cursor{}, 3},
		{loader.Cursor{Position: 2}, 2},
		{loader.Cursor{Position: 4}, 1},
		{loader.Cursor{Position: 9}, 0},
		{loader.Cursor{Epoch: 1}, 3},
		{loader.Cursor{Epoch: 1, Position: 5}, 2},
		{loader.Cursor{Epoch: 2, Position: 1}, 2},
	} {
		left, known := l.BatchesFrom(at.at)
		require.True(t, known)
		require.Equal(t, at.left, left, "%v", at.at)
	}
}
