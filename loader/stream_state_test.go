package loader_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

func TestEachOptionOfAStreamOutOfRangeIsNamed(t *testing.T) {
	agree := func(_ context.Context, rows int, _ error) (int, int, error) { return rows, rows, nil }
	sizes := []loader.SizeFrom{{Sample: 8, BatchSize: 2}}
	for name, c := range map[string]struct {
		shards int
		o      loader.Options
		want   []string
		says   string
	}{
		"more ranks than shards": {3, loader.Options{Shard: loader.Shard{Count: 4}, Last: loader.Drop, Steps: 1}, []string{"Shard.Count"}, "Shard.Count is 4, want at most 3, the number of shards"},
		"no steps":               {3, loader.Options{Shard: loader.Shard{Count: 2}, Last: loader.Drop}, []string{"Steps"}, "Steps is 0, want 1 or more, or else Agree, with 2 ranks"},
		"no shards":              {0, loader.Options{}, []string{"Shards"}, "Shards is 0"},
		"negative shards":        {-1, loader.Options{}, []string{"Shards"}, ""},
		"too many shards":        {1<<16 + 1, loader.Options{}, []string{"Shards"}, ""},
		"negative steps":         {3, loader.Options{Steps: -1}, []string{"Steps"}, ""},
		"endless steps":          {3, loader.Options{Steps: math.MaxInt}, []string{"Steps"}, ""},
		"negative skips":         {3, loader.Options{Skips: true, MaxSkipped: -1}, []string{"MaxSkipped"}, ""},
		"a limit without":        {3, loader.Options{MaxSkipped: 1}, []string{"MaxSkipped"}, ""},
		"random access": {3, loader.Options{Shuffle: true, Last: loader.Pad, OnError: loader.Substitute},
			[]string{"Shuffle", "Last", "OnError"}, "a Stream has no random access"},
		"sizes of later epochs": {3, loader.Options{BatchSizes: sizes}, []string{"BatchSizes"}, "nobody knows how many samples lie before a later epoch"},
		"sizes of uneven ranks": {3, loader.Options{BatchSizes: sizes, Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Count: 2}, Agree: agree},
			[]string{"BatchSizes"}, "have no common position"},
		"excluded numbers": {3, loader.Options{Exclude: []loader.Exclusion{{}, {Samples: []int{1}, Leaves: []loader.Leaf{{}}}}},
			[]string{"Exclude[1].Samples", "Exclude[1].Leaves"}, "a Stream's samples have no index"},
		"excluded nowhere": {3, loader.Options{Exclude: []loader.Exclusion{{Files: []string{""}, Origins: []loader.Origin{{}}}}},
			[]string{"Exclude[0].Files", "Exclude[0].Origins"}, "names of files"},
		"excluded steps of uneven ranks": {3, loader.Options{Exclude: []loader.Exclusion{{Steps: []loader.Span{{}}}}, Last: loader.Exact, Shard: loader.Shard{Count: 2}, Agree: agree},
			[]string{"Exclude[0].Steps"}, "have no common position"},
		"excluded steps the wrong way round": {3, loader.Options{Exclude: []loader.Exclusion{{Steps: []loader.Span{{From: loader.Cursor{Epoch: 1}}}}}},
			[]string{"Exclude[0].Steps"}, "a place before"},
		"all steps excluded": {3, loader.Options{Steps: 2, Exclude: []loader.Exclusion{{Steps: []loader.Span{{To: loader.Cursor{Position: 8}}}}}},
			[]string{"Exclude"}, "a step left in epoch 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loader.NewStream(shardsOf{&cut{}, c.shards}, 4, c.o)
			require.Equal(t, c.want, mistakes(t, err))
			require.ErrorContains(t, err, c.says)
		})
	}
	_, err := loader.NewStream(nil, 4, loader.Options{})
	require.Equal(t, []string{"Stream"}, mistakes(t, err))
	only := loader.Options{OnError: loader.SkipFailed, Skips: true, Steps: 3, Agree: agree}
	_, err = loader.New(numbers{n: 10}, 2, only)
	require.Equal(t, []string{"OnError", "Skips", "Steps", "Agree"}, mistakes(t, err))
	_, err = loader.NewIterable(loader.FromSeqFunc(numberFields, each(upTo(3)), encodeNumber), 2, only)
	require.Equal(t, []string{"OnError", "Skips", "Steps", "Agree"}, mistakes(t, err))
}

type shardsOf struct {
	*cut
	shards int
}

func (s shardsOf) Shards() int { return s.shards }

// A State that no run has left is refused, and says what is wrong with it.
func TestAStateOfAStreamThatDoesNotFit(t *testing.T) {
	l := newCut(t, &cut{sizes: []int{9, 9, 9}, every: 1}, 4, loader.Options{Epochs: 3})
	steps, err := readStates(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	good := steps[2].state
	require.NoError(t, l.Check(good))
	for name, c := range map[string]struct {
		spoil func(s *loader.State)
		says  string
	}{
		"of an iterable":   {func(s *loader.State) { s.Shards, s.Marks = 0, nil }, "the data is a Stream of 3 shards, the state was saved without"},
		"other shards":     {func(s *loader.State) { s.Shards = 4 }, "the stream has 3 shards, the state was saved with 4"},
		"with steps":       {func(s *loader.State) { s.Steps = 5 }, "Options.Steps is 0, the state was saved with 5"},
		"one rank's":       {func(s *loader.State) { s.Marks = s.Marks[:1] }, "the other 2 are in the states of other ranks; see MergeStates"},
		"no marks":         {func(s *loader.State) { s.Marks = nil }, "the other 3 are in the states of other ranks"},
		"a shard twice":    {func(s *loader.State) { s.Marks[0].Shard = 1 }, "shard 1 twice"},
		"no such shard":    {func(s *loader.State) { s.Marks[0].Shard = 3 }, "shard 3, want 0 to 2"},
		"negative shard":   {func(s *loader.State) { s.Marks[0].Shard = math.MinInt }, "want 0 to 2"},
		"negative pass":    {func(s *loader.State) { s.Marks[1].Pass = -1 }, "Marks of shard 1: Pass is -1"},
		"another pass":     {func(s *loader.State) { s.Marks[1].Pass = 2 }, "Marks of shard 1: Pass is 2, want 0, the epoch"},
		"negative samples": {func(s *loader.State) { s.Marks[1].Samples = -1 }, "Marks of shard 1: Samples is -1"},
		"endless samples":  {func(s *loader.State) { s.Marks[1].Samples = math.MaxInt64 }, "Marks of shard 1: Samples"},
		"negative leave":   {func(s *loader.State) { s.Marks[1].Leave = -1 }, "Marks of shard 1: Leave is -1"},
		"no JSON":          {func(s *loader.State) { s.Marks[1].Mark = json.RawMessage(`{`) }, "Marks of shard 1: Mark is {, want a JSON value"},
		"another position": {func(s *loader.State) { s.Position++ }, "Position is 13, want 12, the sum over the shards"},
		"negative skipped": {func(s *loader.State) { s.Skipped = -1 }, "Skipped is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := throughJSON(t, good)
			c.spoil(&bad)
			err := l.Check(bad)
			var state *loader.StateError
			require.ErrorAs(t, err, &state)
			require.ErrorContains(t, err, c.says)
		})
	}
	// What only the reader can tell comes from the run.
	for _, spoil := range []func(m *loader.ShardMark){
		func(m *loader.ShardMark) { m.Mark = json.RawMessage(`"nonsense"`) },
		func(m *loader.ShardMark) { m.Leave = math.MaxInt32 },
	} {
		bad := throughJSON(t, good)
		spoil(&bad.Marks[2])
		require.NoError(t, l.Check(bad))
		_, err := readAll(t, l, bad.Cursor(), 2)
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 2, failure.Shard)
	}
	// A place by hand, and one that is forgotten.
	for _, at := range []loader.Cursor{{Position: 4}, {Epoch: 1, Position: 8}, {Epoch: -1}} {
		_, err := readAll(t, l, at, 2)
		var state *loader.StateError
		require.ErrorAs(t, err, &state)
		require.Equal(t, "Cursor", state.Field)
	}
}

func TestStatesThatCannotBeMerged(t *testing.T) {
	c := &cut{sizes: []int{20, 20, 20, 20}, every: 1}
	all, errs := ranksOf(t, c, 2, 2, loader.Options{Epochs: 1, Last: loader.Exact}, loader.Cursor{}, 2)
	require.NoError(t, errs[0])
	a, b := all[0], all[1]
	merged, err := loader.MergeStates(b[3].state, a[3].state)
	require.NoError(t, err)
	require.EqualValues(t, 16, merged.Position)
	again, err := loader.MergeStates(merged)
	require.NoError(t, err)
	require.True(t, merged.Equal(again))

	for name, states := range map[string][]loader.State{
		"none":          {},
		"one only":      {a[3].state},
		"one twice":     {a[3].state, a[3].state, b[3].state},
		"another step":  {a[3].state, b[4].state},
		"another seed":  {a[3].state, func() loader.State { s := b[3].state; s.Seed++; return s }()},
		"another epoch": {a[3].state, func() loader.State { s := b[3].state; s.Epoch++; return s }()},
	} {
		_, err := loader.MergeStates(states...)
		var bad *loader.StateError
		require.ErrorAs(t, err, &bad, name)
	}
	// At an epoch's beginning, and of other data, there is nothing to be merged.
	o := loader.Options{Steps: 2, Last: loader.Drop, Shard: loader.Shard{Count: 2}}
	begin := newCut(t, c, 2, o).StateAt(loader.Cursor{})
	merged, err = loader.MergeStates(begin, begin)
	require.NoError(t, err)
	require.True(t, begin.Equal(merged))
	require.NoError(t, newCut(t, c, 2, o).Check(merged))
	plain := newNumbers(t, numbers{n: 10}, 4, loader.Options{}).StateAt(loader.Cursor{Position: 4})
	merged, err = loader.MergeStates(plain, plain)
	require.NoError(t, err)
	require.True(t, plain.Equal(merged))
}

// Going on reads a few hundred records again at most, however far the place is; and all of
// them where the reader has no marks, of which the State tells.
func TestGoingOnReadsLittleAgain(t *testing.T) {
	for _, every := range []int{1, 0} {
		c := &cut{sizes: []int{100_000}, every: every}
		l := newCut(t, c, 100, loader.Options{Epochs: 1})
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		var at loader.Cursor
		for range 500 {
			f, err := run.Next(t.Context())
			require.NoError(t, err)
			mem.Put(f.Slot)
			at = f.After
		}
		state := throughJSON(t, l.StateAt(at))
		require.NoError(t, run.Close())
		require.Equal(t, every == 0, state.Marks[0].Replay)
		c.read.Store(0)
		run = l.Start(t.Context(), state.Cursor(), mem)
		b, err := read(l, run, mem)
		require.NoError(t, err)
		require.EqualValues(t, 50_000, b.indices[0])
		require.NoError(t, run.Close())
		if every == 0 {
			require.Greater(t, c.read.Load(), int64(50_000))
		} else {
			require.Less(t, c.read.Load(), int64(256+2*100+3*100+1024))
		}
	}
}

// The places of a Run are forgotten as others are delivered, and a State is worked out when
// it is asked for: a batch allocates nothing.
func TestAStreamAllocatesNothingInSteadyState(t *testing.T) {
	for _, skips := range []bool{false, true} {
		c := &cut{sizes: []int{1 << 30, 1 << 30, 1 << 30}, every: 1}
		l := newCut(t, c, 16, loader.Options{Workers: 1, Skips: skips})
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		var at loader.Cursor
		next := func() {
			f, err := run.Next(context.Background())
			if err != nil {
				panic(err)
			}
			at = f.After
			mem.Put(f.Slot)
		}
		for range 500 {
			next()
		}
		runtime.GC()
		// Samples go through a sync.Pool, as of an Iterable.
		require.Less(t, testing.AllocsPerRun(2000, next), 16.0)
		require.Positive(t, testing.AllocsPerRun(10, func() { _ = l.StateAt(at) }))
		require.NoError(t, run.Close())
	}
}

// One shard and one rank: as an Iterable of the same samples, in all but the state's marks.
func TestAStreamOfOneShardIsAnIterable(t *testing.T) {
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Drop, loader.Exact} {
		for n := 4; n < 14; n++ {
			o := loader.Options{Epochs: 2, Seed: 9, Last: last}
			want, err := readAll(t, newStream(t, upTo(n), 4, o), loader.Cursor{}, 3)
			require.NoError(t, err)
			got, err := readStates(t, newCut(t, &cut{sizes: []int{n}, every: 1, next: samePass}, 4, o), loader.Cursor{}, 3)
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for i := range got {
				want[i].filled.After = loader.Cursor{}
				got[i].state = loader.State{}
				require.Equal(t, step{batch: want[i]}, got[i])
			}
		}
	}
}

// samePass gives every pass the numbers of the first.
func samePass(_ context.Context, _ loader.Pass, shard, n int) (loader.Encoder, bool, error) {
	return (&cut{}).number(numberOf(0, shard, n)), true, nil
}

// The seed reaches the readers, and epochs are passes.
func TestReadersAreToldTheirPass(t *testing.T) {
	var seen []loader.Pass
	c := &cut{sizes: []int{2}, every: 1}
	c.next = func(_ context.Context, pass loader.Pass, _, n int) (loader.Encoder, bool, error) {
		if n == 0 {
			seen = append(seen, pass)
		}
		return nil, true, nil
	}
	_, err := readAll(t, newCut(t, c, 2, loader.Options{Epochs: 3, Seed: 42}), loader.Cursor{}, 1)
	require.NoError(t, err)
	require.Equal(t, []loader.Pass{{Epoch: 0, Seed: 42}, {Epoch: 1, Seed: 42}, {Epoch: 2, Seed: 42}}, seen)
}

// Shards of unequal size, over several epochs: under each policy all ranks make equally
// many steps, and none waits for another that has ended.
func TestRanksOfUnequalShardsMakeEqualSteps(t *testing.T) {
	for _, c := range []struct {
		sizes         []int
		ranks, batch  int
		o             loader.Options
		steps         int // of an epoch
		rows          int // of all ranks in all epochs
		tooFewOrNever bool
	}{
		{sizes: []int{10, 10, 3}, ranks: 2, batch: 4, o: loader.Options{Last: loader.Drop}, steps: 2, rows: 2 * 2 * 4},
		{sizes: []int{10, 10, 3}, ranks: 2, batch: 4, o: loader.Options{Last: loader.Exact}, steps: 4, rows: 23},
		{sizes: []int{10, 10, 3}, ranks: 2, batch: 4, o: loader.Options{Last: loader.Drop, Steps: 5}, steps: 5, rows: 2 * 5 * 4},
		{sizes: []int{5, 3}, ranks: 2, batch: 1, o: loader.Options{Last: loader.Drop}, steps: 3, rows: 6},
		{sizes: []int{5, 3}, ranks: 2, batch: 1, o: loader.Options{Last: loader.Exact}, steps: 5, rows: 8},
		{sizes: []int{9, 0, 1, 4, 2}, ranks: 4, batch: 3, o: loader.Options{Last: loader.Exact}, steps: 4, rows: 16},
		{sizes: []int{9, 0, 1, 4, 2}, ranks: 4, batch: 3, o: loader.Options{Last: loader.Drop}, tooFewOrNever: true},
		{sizes: []int{9, 0, 1, 4, 2}, ranks: 4, batch: 3, o: loader.Options{Last: loader.Drop, Steps: 2}, tooFewOrNever: true},
	} {
		o := c.o
		o.Epochs = 3
		data := &cut{sizes: c.sizes, every: 1}
		all, errs := ranksOf(t, data, c.batch, c.ranks, o, loader.Cursor{}, 2)
		if c.tooFewOrNever {
			failed := errors.Join(errs...)
			require.True(t, errors.Is(failed, loader.ErrTooFewSamples) || errors.Is(failed, loader.ErrNoSamples), "%v", failed)
			continue
		}
		rows := 0
		for rank, steps := range all {
			require.NoError(t, errs[rank])
			require.Len(t, steps, 3*c.steps)
			rows += len(indices(batchesOf(steps)))
		}
		require.Equal(t, 3*c.rows, rows)
		require.Equal(t, data.opened.Load(), data.closed.Load())
	}
}

// Close may come at any moment, beside Next and while readers read.
func TestAStreamIsClosedAtAnyMoment(t *testing.T) {
	for stop := range 60 {
		data := holed([]int{300, 0, 70, 200}, 1)
		o := loader.Options{OnError: loader.SkipFailed, Steps: 10 * (stop % 2), Last: loader.Drop}
		l := newCut(t, data, 5, o)
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		closed := make(chan error)
		for i := 0; ; i++ {
			if i == stop/2 {
				go func() { closed <- run.Close() }()
			}
			_, err := read(l, run, mem)
			if err == loader.ErrEpochEnd {
				continue
			}
			if err != nil {
				require.Equal(t, loader.ErrClosed, err)
				break
			}
		}
		require.NoError(t, <-closed)
		require.Equal(t, 3, mem.Free())
		require.Equal(t, data.opened.Load(), data.closed.Load())
	}
}
