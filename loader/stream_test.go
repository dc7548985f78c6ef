package loader_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// cut is a stream of numbers: shard i has sizes[i] of them, which say pass, shard and place.
// every is how many records lie between two places that it can mark, 0 if it can mark none.
type cut struct {
	sizes []int
	every int
	// next, if not nil, is asked first, and may give another outcome for a record.
	next func(ctx context.Context, pass loader.Pass, shard, n int) (loader.Encoder, bool, error)
	// encode, if not nil, may fail a sample.
	encode func(ctx context.Context, number int) error

	opened, closed, read atomic.Int64
}

func (c *cut) Fields() []loader.Field { return numberFields }
func (c *cut) Shards() int            { return len(c.sizes) }

func (c *cut) Open(_ context.Context, pass loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	r := &cutReader{cut: c, pass: pass, shard: shard}
	if mark != nil {
		var err error
		if r.n, err = strconv.Atoi(string(mark)); err != nil {
			return nil, err
		}
	}
	c.opened.Add(1)
	return r, nil
}

type cutReader struct {
	cut   *cut
	pass  loader.Pass
	shard int
	n     int
}

// numberOf is the sample at a place.
func numberOf(pass, shard, n int) int { return pass*1_000_000 + shard*1_000 + n }

func (r *cutReader) Next(ctx context.Context) (loader.Encoder, bool, error) {
	if r.n == r.cut.sizes[r.shard] {
		return nil, false, nil
	}
	n := r.n
	r.n++
	r.cut.read.Add(1)
	if next := r.cut.next; next != nil {
		if e, ok, err := next(ctx, r.pass, r.shard, n); !ok || err != nil || e != nil {
			return e, ok, err
		}
	}
	return r.cut.number(numberOf(r.pass.Epoch, r.shard, n)), true, nil
}

func (r *cutReader) AppendMark(dst []byte) ([]byte, error) {
	if r.cut.every == 0 || r.n%r.cut.every != 0 {
		return dst, loader.ErrNoMark
	}
	return strconv.AppendInt(dst, int64(r.n), 10), nil
}

func (r *cutReader) Close() error {
	r.cut.closed.Add(1)
	return nil
}

// aNumber is a sample of cut. It is used again once it is encoded.
type aNumber struct {
	cut    *cut
	number int
}

var someNumbers = sync.Pool{New: func() any { return new(aNumber) }}

func (c *cut) number(n int) *aNumber {
	e := someNumbers.Get().(*aNumber)
	e.cut, e.number = c, n
	return e
}

func (e *aNumber) Encode(ctx context.Context, row *loader.Row) error {
	n, encode := e.number, e.cut.encode
	someNumbers.Put(e)
	if encode != nil {
		if err := encode(ctx, n); err != nil {
			return err
		}
	}
	writeNumber(n, row)
	return nil
}

func (e *aNumber) Origin() loader.Origin {
	return loader.Origin{File: shardNames[e.number/1000%1000], Record: int64(e.number % 1000), Offset: int64(e.number%1000) * 8}
}

var shardNames = func() (names [1000]string) {
	for i := range names {
		names[i] = fmt.Sprintf("shard-%d", i)
	}
	return names
}()

func newCut(t require.TestingT, c *cut, batchSize int, o loader.Options) *loader.Loader {
	l, err := loader.NewStream(c, batchSize, o)
	require.NoError(t, err)
	return l
}

// inTurn is the reference: the numbers of a rank's shards from where each has given so many,
// without end if the shards begin again, and their positions.
func inTurn(sizes, given []int, pass, rank, ranks int, again bool, most int) (numbers, positions []int64) {
	given = append([]int(nil), given...)
	numbers, positions = []int64{}, []int64{}
	for len(numbers) < most {
		shard := -1
		for i := rank; i < len(sizes); i += ranks {
			if sizes[i] == 0 || !again && given[i] == sizes[i] {
				continue
			}
			if shard < 0 || given[i] < given[shard] {
				shard = i
			}
		}
		if shard < 0 {
			break
		}
		n := given[shard]
		given[shard]++
		at, in := n, pass
		if again {
			at, in = n%sizes[shard], pass+n/sizes[shard]
		}
		numbers = append(numbers, int64(numberOf(in, shard, at)))
		positions = append(positions, int64(n*len(sizes)+shard))
	}
	return numbers, positions
}

func drawSizes(t *rapid.T, most int) []int {
	shards := rapid.SampledFrom([]int{1, 2, 3, 4, 6, 8}).Draw(t, "shards")
	sizes := make([]int, shards)
	for i := range sizes {
		sizes[i] = rapid.IntRange(0, most).Draw(t, "size")
	}
	return sizes
}

func total(sizes []int) (n int) {
	for _, size := range sizes {
		n += size
	}
	return n
}

// One rank reads every sample of each epoch once, in the order of the positions, whatever
// the workers and slots; and goes on from every place, twice, to the same bytes.
func TestAStreamOfOneRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batchSize := rapid.IntRange(1, 5).Draw(t, "batch")
		c := &cut{sizes: drawSizes(t, 3*batchSize+1), every: rapid.IntRange(0, 3).Draw(t, "every")}
		o := loader.Options{Epochs: 2, Seed: 5, Workers: rapid.IntRange(1, 4).Draw(t, "workers")}
		o.Last = rapid.SampledFrom([]loader.LastPolicy{loader.Keep, loader.Drop, loader.Exact}).Draw(t, "last")
		l := newCut(t, c, batchSize, o)
		n := total(c.sizes)
		slots := slotCount(t)
		want, err := readStates(t, l, loader.Cursor{}, slots)
		switch {
		case n == 0:
			require.ErrorIs(t, err, loader.ErrNoSamples)
			return
		case o.Last == loader.Drop && n < batchSize:
			require.ErrorIs(t, err, loader.ErrTooFewSamples)
			return
		}
		require.NoError(t, err)
		var numbers, positions []int64
		for epoch := range 2 {
			n, p := inTurn(c.sizes, make([]int, len(c.sizes)), epoch, 0, 1, false, 1<<20)
			if o.Last == loader.Drop {
				whole := len(n) / batchSize * batchSize
				n, p = n[:whole], p[:whole]
			}
			numbers, positions = append(numbers, n...), append(positions, p...)
		}
		require.Equal(t, numbers, indices(batchesOf(want)))
		require.Equal(t, positions, allPositions(want))

		stop := rapid.IntRange(0, len(want)-1).Draw(t, "stop")
		o.Workers = rapid.IntRange(1, 4).Draw(t, "other workers")
		l = newCut(t, c, batchSize, o)
		require.NoError(t, l.Check(want[stop].state))
		rest, err := readStates(t, l, want[stop].state.Cursor(), slotCount(t))
		require.NoError(t, err)
		requireSameStates(t, want[stop+1:], rest)
		if len(rest) > 1 {
			again := rapid.IntRange(0, len(rest)-2).Draw(t, "stop again")
			last, err := readStates(t, l, rest[again].state.Cursor(), slotCount(t))
			require.NoError(t, err)
			requireSameStates(t, rest[again+1:], last)
		}
		require.Equal(t, c.opened.Load(), c.closed.Load())
	})
}

// step is a batch, and the state once it was delivered, after a trip through JSON.
type step struct {
	batch
	state loader.State
}

func batchesOf(steps []step) (all []batch) {
	for _, s := range steps {
		all = append(all, s.batch)
	}
	return all
}

func allPositions(steps []step) (all []int64) {
	for _, s := range steps {
		all = append(all, s.positions...)
	}
	return all
}

// readStates is readAll with the state behind each batch. The cursors are taken out.
func readStates(t require.TestingT, l *loader.Loader, at loader.Cursor, slots int) (steps []step, err error) {
	mem := heap(t, l, slots)
	run := l.Start(context.Background(), at, mem)
	for {
		b, err := read(l, run, mem)
		switch err {
		case nil:
			steps = append(steps, step{b, throughJSON(t, l.StateAt(b.filled.After))})
			steps[len(steps)-1].filled.After = loader.Cursor{}
			continue
		case loader.ErrEpochEnd:
			continue
		case loader.ErrEnd:
			err = nil
		}
		require.NoError(t, run.Close())
		require.Equal(t, slots, mem.Free())
		return steps, err
	}
}

func throughJSON(t require.TestingT, s loader.State) (back loader.State) {
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &back))
	require.True(t, s.Equal(back), "%s", text)
	return back
}

// requireSameStates requires the same samples: marks may differ, and batches may be counted
// differently in an epoch that another batch size began.
func requireSameStates(t require.TestingT, want, got []step) {
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.Equal(t, want[i].indices, got[i].indices)
		require.Equal(t, want[i].positions, got[i].positions)
		require.Equal(t, want[i].random, got[i].random)
		require.Equal(t, want[i].filled, got[i].filled)
		require.Equal(t, want[i].state.Position, got[i].state.Position)
		require.Equal(t, want[i].state.Epoch, got[i].state.Epoch)
	}
}

// ranksOf runs all ranks of a stream at once from a cursor on. agree is made for them.
func ranksOf(t require.TestingT, c *cut, batchSize, ranks int, o loader.Options, at loader.Cursor, slots int) (all [][]step, errs []error) {
	all, errs = make([][]step, ranks), make([]error, ranks)
	if o.Steps == 0 && ranks > 1 {
		o.Agree = nil
	}
	v := newVote(ranks)
	var wait sync.WaitGroup
	for rank := range ranks {
		o := o
		o.Shard = loader.Shard{Index: rank, Count: ranks}
		if o.Steps == 0 && ranks > 1 {
			o.Agree = v.agree
		}
		l := newCut(t, c, batchSize, o)
		wait.Go(func() { all[rank], errs[rank] = readStates(t, l, at, slots) })
	}
	wait.Wait()
	return all, errs
}

// vote is an all-reduce between goroutines.
type vote struct {
	mu          sync.Mutex
	cond        sync.Cond
	ranks       int
	in          []int
	round       int
	least, most int
	failed      error // of a rank that has failed
}

func newVote(ranks int) *vote {
	v := &vote{ranks: ranks}
	v.cond.L = &v.mu
	return v
}

func (v *vote) agree(_ context.Context, rows int, _ error) (least, most int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.in = append(v.in, rows)
	if len(v.in) == v.ranks {
		v.least, v.most = v.in[0], v.in[0]
		for _, rows := range v.in {
			v.least, v.most = min(v.least, rows), max(v.most, rows)
		}
		v.in = v.in[:0]
		v.round++
		v.cond.Broadcast()
		return v.least, v.most, nil
	}
	for round := v.round; v.round == round; {
		v.cond.Wait()
	}
	return v.least, v.most, nil
}

// agreeTelling sends along why a rank has failed, and returns it on all.
func (v *vote) agreeTelling(ctx context.Context, rows int, failed error) (least, most int, err error) {
	if failed != nil {
		v.mu.Lock()
		v.failed = failed
		v.mu.Unlock()
	}
	least, most, _ = v.agree(ctx, rows, failed)
	v.mu.Lock()
	defer v.mu.Unlock()
	if least == -1 {
		err = v.failed
	}
	return least, most, err
}

// Every rank makes equally many steps, each sample comes at most once, and under Exact
// exactly once; merged states go on in any other world.
func TestAStreamOfSeveralRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batchSize := rapid.IntRange(1, 4).Draw(t, "batch")
		c := &cut{sizes: drawSizes(t, 3*batchSize+1), every: rapid.IntRange(0, 3).Draw(t, "every")}
		shards := len(c.sizes)
		ranks := rapid.IntRange(1, min(4, shards)).Draw(t, "ranks")
		o := loader.Options{Epochs: 1, Seed: 5, Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Last: loader.Exact}
		drop := rapid.Bool().Draw(t, "drop")
		if drop {
			o.Last = loader.Drop
		}
		all, errs := ranksOf(t, c, batchSize, ranks, o, loader.Cursor{}, slotCount(t))
		for _, err := range errs {
			require.Equal(t, errs[0] == nil, err == nil, "all or none: %v", errs)
		}
		if errs[0] != nil {
			return
		}
		seen := map[int64]bool{}
		for rank, steps := range all {
			require.Len(t, steps, len(all[0]), "equal steps")
			numbers, _ := inTurn(c.sizes, make([]int, shards), 0, rank, ranks, false, 1<<20)
			got := indices(batchesOf(steps))
			require.Equal(t, numbers[:len(got)], append([]int64{}, got...))
			for _, n := range got {
				require.False(t, seen[n])
				seen[n] = true
			}
		}
		if !drop {
			require.Len(t, seen, total(c.sizes))
		}

		// Go on behind a step, in another world.
		stop := rapid.IntRange(0, len(all[0])-1).Draw(t, "stop")
		var states []loader.State
		before := map[int64]bool{}
		given := make([]int, shards)
		for _, steps := range all {
			states = append(states, steps[stop].state)
			for _, n := range indices(batchesOf(steps[:stop+1])) {
				before[n] = true
				given[n/1000%1000]++
			}
		}
		merged, err := loader.MergeStates(states...)
		require.NoError(t, err)
		merged = throughJSON(t, merged)
		require.EqualValues(t, len(before), merged.Position)
		others := rapid.IntRange(1, min(4, shards)).Draw(t, "other ranks")
		rest, errs := ranksOf(t, c, batchSize, others, o, merged.Cursor(), slotCount(t))
		for rank, steps := range rest {
			require.NoError(t, errs[rank])
			numbers, _ := inTurn(c.sizes, given, 0, rank, others, false, 1<<20)
			got := indices(batchesOf(steps))
			require.Equal(t, numbers[:len(got)], append([]int64{}, got...))
			for _, n := range got {
				require.False(t, before[n])
				before[n] = true
			}
		}
		if !drop {
			require.Len(t, before, total(c.sizes))
		}
		require.Equal(t, c.opened.Load(), c.closed.Load())
	})
}

// With a stated number of steps the sequence does not end, and for every world that divides
// the shards a step of the same global batch has the same samples.
func TestAStreamWithSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cut{sizes: drawSizes(t, 13), every: rapid.IntRange(0, 3).Draw(t, "every")}
		if total(c.sizes) == 0 {
			c.sizes[0] = 1
		}
		for i := range c.sizes { // each rank has samples
			c.sizes[i] = max(c.sizes[i], 1)
		}
		shards := len(c.sizes)
		const global = 12
		var worlds []int
		for _, w := range []int{1, 2, 3, 4} {
			if shards%w == 0 {
				worlds = append(worlds, w)
			}
		}
		steps := rapid.IntRange(1, 5).Draw(t, "steps")
		o := loader.Options{Epochs: 3, Seed: 5, Steps: steps, Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Last: loader.Drop}
		world := func(label string) int { return rapid.SampledFrom(worlds).Draw(t, label) }
		numbers, _ := inTurn(c.sizes, make([]int, shards), 0, 0, 1, true, 3*steps*global)

		first := world("ranks")
		all, errs := ranksOf(t, c, global/first, first, o, loader.Cursor{}, slotCount(t))
		requireGlobalBatches(t, numbers, all, errs, 3*steps, 0, steps)

		stop := rapid.IntRange(0, 3*steps-2).Draw(t, "stop")
		var states []loader.State
		for _, s := range all {
			states = append(states, s[stop].state)
		}
		merged, err := loader.MergeStates(states...)
		require.NoError(t, err)
		second := world("other ranks")
		rest, errs := ranksOf(t, c, global/second, second, o, merged.Cursor(), slotCount(t))
		requireGlobalBatches(t, numbers, rest, errs, 3*steps-stop-1, stop+1, steps)
		require.Equal(t, c.opened.Load(), c.closed.Load())
	})
}

// requireGlobalBatches requires that all ranks together have the numbers, as sets by step.
func requireGlobalBatches(t require.TestingT, numbers []int64, all [][]step, errs []error, count, from, steps int) {
	for rank := range all {
		require.NoError(t, errs[rank])
		require.Len(t, all[rank], count)
	}
	for i := range count {
		var got []int64
		for _, s := range all {
			got = append(got, s[i].indices...)
			require.Equal(t, (from+i)/steps, s[i].filled.Epoch)
			require.Equal(t, (from+i)%steps, s[i].filled.Batch)
			require.Equal(t, (from+i+1)%steps == 0, s[i].filled.LastOfEpoch)
		}
		require.ElementsMatch(t, numbers[(from+i)*12:(from+i+1)*12], got)
	}
}

func TestAStreamLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cut{sizes: []int{100, 0, 50}, every: 1}
		l := newCut(t, c, 4, loader.Options{})
		for stop := range 40 {
			mem := heap(t, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			for range stop {
				_, err := read(l, run, mem)
				require.NoError(t, err)
				if stop > 37 {
					break
				}
			}
			require.NoError(t, run.Close())
			require.Equal(t, 3, mem.Free())
			require.Equal(t, c.opened.Load(), c.closed.Load())
		}
	})
}

// Under Steps every batch is full, so that the policy for the last one has no meaning.
func TestStepsOfSeveralRanksNeedNoLastPolicy(t *testing.T) {
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Drop, loader.Exact} {
		for rank := range 2 {
			c := &cut{sizes: []int{5, 3}, every: 1}
			l := newCut(t, c, 2, loader.Options{Epochs: 1, Steps: 4, Last: last, Shard: loader.Shard{Index: rank, Count: 2}})
			mem := heap(t, l, 2)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			batches, err := readEpoch(l, run, mem)
			require.Equal(t, loader.ErrEpochEnd, err)
			require.Len(t, batches, 4)
			for _, b := range batches {
				require.Equal(t, 2, b.filled.N)
			}
			require.NoError(t, run.Close())
		}
	}
}
