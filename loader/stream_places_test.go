package loader_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// States of a dataset are the same on all ranks, so those that were saved behind different
// steps are not merged, whichever is ahead.
func TestStatesOfDifferentStepsAreNotMerged(t *testing.T) {
	l := newNumbers(t, numbers{n: 100}, 2, loader.Options{Shard: loader.Shard{Count: 2}, Last: loader.Drop})
	before, behind := l.StateAt(loader.Cursor{Position: 8}), l.StateAt(loader.Cursor{Position: 12})
	for _, states := range [][]loader.State{{before, behind}, {behind, before}} {
		_, err := loader.MergeStates(states...)
		require.EqualError(t, err, "loader: Position is 8, want 12, as on another rank: saved behind the same step")
	}
	merged, err := loader.MergeStates(behind, behind)
	require.NoError(t, err)
	require.Equal(t, behind, merged)
}

// A cursor whose marks are not those of the rank's shards, each once, is no place to start at.
func TestACursorWithOtherMarksIsRefused(t *testing.T) {
	c := &cut{sizes: []int{10, 10, 10}, every: 1}
	l := newCut(t, c, 3, loader.Options{Epochs: 1})
	steps, err := readStates(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	for _, shards := range [][]int{{0, 1}, {1, 2}, {0, 0, 1}, {1, 1, 2}, {0, 1, 2, 2}, {0, 1, 2, 3}} {
		state := steps[0].state
		state.Marks = nil
		for _, shard := range shards {
			mark := steps[0].state.Marks[shard%3]
			mark.Shard = shard
			state.Marks = append(state.Marks, mark)
		}
		require.Error(t, l.Check(state), "%v", shards)
		_, err := readStates(t, l, state.Cursor(), 2)
		var bad *loader.StateError
		require.ErrorAs(t, err, &bad, "%v", shards)
	}
}

// A State is its owner's: a reader may write to the mark that it is opened at.
func TestAReaderDoesNotWriteToAState(t *testing.T) {
	c := &cut{sizes: []int{600}, every: 1}
	l := newCut(t, c, 100, loader.Options{Epochs: 1})
	steps, err := readStates(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	state := steps[3].state
	require.NotEmpty(t, state.Marks[0].Mark)
	before := throughJSON(t, state)
	l = newScribbler(t, c)
	_, err = readStates(t, l, state.Cursor(), 2)
	require.NoError(t, err)
	require.Equal(t, before, state)
}

// scribbler writes to the marks that it is given.
type scribbler struct{ *cut }

func newScribbler(t *testing.T, c *cut) *loader.Loader {
	l, err := loader.NewStream(scribbler{c}, 100, loader.Options{Epochs: 1})
	require.NoError(t, err)
	return l
}

func (s scribbler) Open(ctx context.Context, pass loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	r, err := s.cut.Open(ctx, pass, shard, mark)
	for i := range mark {
		mark[i] = 'x'
	}
	return r, err
}

// A rank that has no samples stays at position 0, but not at the epoch's beginning: it goes
// on from behind each step, the last one too, as the others do.
func TestARankWithoutSamplesGoesOn(t *testing.T) {
	c := &cut{sizes: []int{5, 0}, every: 1}
	o := loader.Options{Epochs: 1, Last: loader.Exact}
	all, errs := ranksOf(t, c, 2, 2, o, loader.Cursor{}, 2)
	require.NoError(t, errors.Join(errs...))
	require.Len(t, all[1], 3)
	for i := range all[1] {
		v := newVote(2)
		left := make(chan int, 2)
		for rank := range 2 {
			o := o
			o.Shard, o.Agree = loader.Shard{Index: rank, Count: 2}, v.agree
			l := newCut(t, c, 2, o)
			go func() {
				steps, err := readStates(t, l, all[rank][i].state.Cursor(), 2)
				if err != nil {
					t.Error(rank, err)
				}
				left <- len(steps)
			}()
		}
		require.Equal(t, 2-i, <-left)
		require.Equal(t, 2-i, <-left)
	}
}

// Each pass has its own failures in a row: a reader that stands in the second one where it
// stood in the first has got on.
func TestFailuresInARowAreOfOnePass(t *testing.T) {
	c := &cut{sizes: []int{110}, every: 1, next: func(_ context.Context, _ loader.Pass, _, n int) (loader.Encoder, bool, error) {
		if n < 100 {
			return nil, false, errors.New("broken")
		}
		return nil, true, nil
	}}
	l := newCut(t, c, 5, loader.Options{Epochs: 3, OnError: loader.SkipFailed})
	steps, err := readStates(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Len(t, steps, 6)
}

// Where a shard fails behind samples too many, both are told.
func TestOneTooManyBeforeAFailure(t *testing.T) {
	broken := errors.New("broken")
	c := &cut{sizes: []int{4, 4}, every: 1, next: func(_ context.Context, _ loader.Pass, shard, n int) (loader.Encoder, bool, error) {
		if shard == 1 && n == 2 {
			return nil, false, broken
		}
		return nil, true, nil
	}}
	c.encode = func(_ context.Context, n int) error {
		if n%1000 < 2 {
			return loader.Skip
		}
		return nil
	}
	l := newCut(t, c, 2, loader.Options{Skips: true, MaxSkipped: 3})
	_, err := readStates(t, l, loader.Cursor{}, 2)
	var many *loader.SkipError
	require.ErrorAs(t, err, &many)
	require.ErrorIs(t, err, broken)
}

// A key of a mark that can't be read would be another place.
func TestAMarkWithOtherKeysIsNotRead(t *testing.T) {
	c := &cut{sizes: []int{10, 10}, every: 1}
	l := newCut(t, c, 3, loader.Options{Epochs: 1})
	steps, err := readStates(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	text, err := json.Marshal(steps[1].state)
	require.NoError(t, err)
	for _, c := range []struct{ old, new, want string }{
		{`"leave"`, `"leaves"`, `loader: the state has a key "marks[0].leaves", which is not known`},
		{`"samples":3`, `"samples":null`, `loader: the state has no "marks[0].samples"`},
		{`[{"shard":0,`, `[null,{"shard":0,`, "loader: the state has no \"marks[0].shard\"\nloader: the state has no \"marks[0].pass\"\nloader: the state has no \"marks[0].samples\""},
	} {
		changed := strings.Replace(string(text), c.old, c.new, 1)
		require.NotEqual(t, string(text), changed)
		var state loader.State
		require.EqualError(t, json.Unmarshal([]byte(changed), &state), c.want)
	}
}

// Seek to the beginning is not taken for the place behind batches without rows.
func TestSeekFromBehindEmptyBatches(t *testing.T) {
	c := &cut{sizes: []int{5, 0}, every: 1}
	l := newCut(t, c, 2, loader.Options{Last: loader.Exact, Shard: loader.Shard{Index: 1, Count: 2}, Agree: func(context.Context, int, error) (int, int, error) {
		return 0, 1, nil
	}})
	claim, err := l.Claim()
	require.NoError(t, err)
	mem := heap(t, l, 2)
	run := l.Start(context.Background(), loader.Cursor{}, mem)
	b, err := run.Next(context.Background())
	require.NoError(t, err)
	require.Zero(t, b.After.Position)
	to, err := claim.Seek(0, 0, b.After)
	require.NoError(t, err)
	require.Equal(t, loader.Cursor{}, to)
	mem.Put(b.Slot)
	require.NoError(t, run.Close())
}

// A Run that no Claim has started forgets the places before what Next has returned, also if
// a pipeline has claimed the same Loader.
func TestARunBesideAClaimForgets(t *testing.T) {
	l := newCut(t, &cut{sizes: []int{1 << 20}, every: 1}, 1, loader.Options{Epochs: 1})
	claim, err := l.Claim()
	require.NoError(t, err)
	claimedStart := func(ctx context.Context, at loader.Cursor, mem loader.Memory) *loader.Run {
		return claim.Start(ctx, at, mem, nil)
	}
	for claimed, start := range map[bool]func(context.Context, loader.Cursor, loader.Memory) *loader.Run{false: l.Start, true: claimedStart} {
		mem := heap(t, l, 2)
		run := start(t.Context(), loader.Cursor{}, mem)
		var first loader.Cursor
		for i := range 1000 {
			b, err := run.Next(t.Context())
			require.NoError(t, err)
			mem.Put(b.Slot)
			if i == 0 {
				first = b.After
			}
		}
		require.Equal(t, claimed, len(l.StateAt(first).Marks) > 0)
		require.NoError(t, run.Close())
	}
}

// lost is a sample whose Origin panics.
type lost struct{ closed *atomic.Int64 }

func (lost) Encode(context.Context, *loader.Row) error { panic("encoded") }
func (lost) Origin() loader.Origin                     { panic("lost") }
func (l lost) Close() error                            { l.closed.Add(1); return nil }

// A sample that can't say where it comes from has failed, and is closed as all that were not
// encoded.
func TestASampleWithoutOriginIsClosed(t *testing.T) {
	for _, skips := range []bool{false, true} {
		var closed atomic.Int64
		c := &cut{sizes: []int{6}, every: 1}
		c.next = func(_ context.Context, _ loader.Pass, _, n int) (loader.Encoder, bool, error) {
			if n == 2 {
				return lost{&closed}, true, nil
			}
			return nil, true, nil
		}
		l := newCut(t, c, 2, loader.Options{Epochs: 1, Skips: skips})
		steps, err := readStates(t, l, loader.Cursor{}, 2)
		require.Len(t, steps, 1)
		var failed *loader.Error
		require.ErrorAs(t, err, &failed)
		require.ErrorContains(t, err, "lost")
		require.Equal(t, loader.StageEncode, failed.Stage)
		require.Equal(t, loader.Origin{}, failed.Origin)
		require.EqualValues(t, 1, closed.Load())

		if skips { // it is left out as others are
			l = newCut(t, c, 2, loader.Options{Epochs: 1, OnError: loader.SkipFailed})
			steps, err = readStates(t, l, loader.Cursor{}, 2)
			require.NoError(t, err)
			require.Equal(t, []int64{0, 1, 3, 4, 5}, indices(batchesOf(steps)))
			require.EqualValues(t, 2, closed.Load())
		}
	}
}
