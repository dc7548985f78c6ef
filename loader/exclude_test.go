package loader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// runRanks is world for any dataset.
func runRanks(t require.TestingT, ds loader.Dataset, batchSize int, o loader.Options, at loader.Cursor) (ranks [][]batch) {
	for rank := range max(1, o.Shard.Count) {
		o.Shard.Index = rank
		l, err := loader.New(ds, batchSize, o)
		require.NoError(t, err)
		batches, err := readAll(t, l, at, 2)
		require.NoError(t, err)
		ranks = append(ranks, batches)
	}
	for _, batches := range ranks {
		require.Len(t, batches, len(ranks[0]), "ranks make equally many steps")
		for step := range batches {
			require.Equal(t, ranks[0][step].filled.After, batches[step].filled.After)
			require.Equal(t, ranks[0][step].filled.LastOfEpoch, batches[step].filled.LastOfEpoch)
		}
	}
	return ranks
}

// drawExclusion draws samples, leaves and files to exclude, of two datasets of 3 and n-3
// samples, which hold equal indices.
func drawExclusion(t *rapid.T, n int) (e loader.Exclusion, excludes func(epoch, index int) bool) {
	if rapid.Bool().Draw(t, "samples") {
		e.Samples = []int{rapid.IntRange(0, n-1).Draw(t, "sample"), 0}
	}
	if rapid.Bool().Draw(t, "leaves") {
		e.Leaves = []loader.Leaf{{Source: 1, Index: rapid.IntRange(0, n-4).Draw(t, "leaf")}}
	}
	if rapid.Bool().Draw(t, "files") {
		e.Files = []string{"first", "none"}
	}
	ds := joined{{n: 3}, {n: n - 3}}
	return e, func(epoch, index int) bool {
		source, at, _ := ds.Part(uint64(epoch), index)
		return slices.Contains(e.Samples, index) || slices.Contains(e.Leaves, loader.Leaf{Source: source, Index: at}) ||
			len(e.Files) > 0 && source == 0
	}
}

func TestExcludedSamplesAreSubstitutedAndAllElseIsAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, batchSize, o := drawWorld(t)
		n := batchSize*o.Shard.Count + rapid.IntRange(6, 30).Draw(t, "more")
		o.Epochs = 3
		ds := joined{{n: 3, file: "first"}, {n: n - 3, file: "second"}}
		before := runRanks(t, ds, batchSize, o, loader.Cursor{})
		stop := rapid.IntRange(0, len(before[0])-1).Draw(t, "stop")
		after := before[0][stop].filled.After

		e, excludes := drawExclusion(t, n)
		o.Exclude = []loader.Exclusion{e}
		l, err := loader.New(ds, batchSize, o)
		require.NoError(t, err)
		now := runRanks(t, ds, batchSize, o, after)
		require.Len(t, now[0], len(before[0])-stop-1)
		if len(now[0]) == 0 {
			return
		}
		for rank := range now {
			for step, b := range now[rank] {
				was := before[rank][stop+1+step]
				order := l.Order(b.filled.Epoch)
				for row := range b.filled.N {
					own := order.At(b.positions[row])
					if excludes(b.filled.Epoch, own) {
						was.indices[row] = b.indices[row]
					}
				}
				was.filled.Substituted = b.filled.Substituted
				require.Empty(t, b.filled.Substituted)
				require.Equal(t, was, b)
			}
		}
		if batchSize%2 == 0 { // other ranks, the same global batches
			half := o
			half.Shard.Count *= 2
			require.Equal(t, globals(now), globals(runRanks(t, ds, batchSize/2, half, after)))
		}
		span, err := l.Span(l.StateAt(after), 0, len(now[0]))
		require.NoError(t, err)
		for _, s := range which(t, l, span) {
			require.False(t, excludes(s.Epoch, s.Index), "stand-ins are not excluded themselves")
			require.EqualValues(t, now[s.Rank][s.Step].indices[s.Row], s.Leaf.Index)
			order := l.Order(s.Epoch)
			if own := order.At(s.Position); excludes(s.Epoch, own) {
				require.Equal(t, own, s.Excluded)
				for index := range l.Candidates(s.Epoch, s.Position) {
					require.False(t, excludes(s.Epoch, index))
				}
			} else {
				require.Equal(t, -1, s.Excluded)
			}
		}
	})
}

func TestExcludedStepsAreJumpedOverByAllRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawWorld(t)
		n += 3 * batchSize * o.Shard.Count
		o.Epochs = 3
		ds := numbers{n: n}
		before := runRanks(t, ds, batchSize, o, loader.Cursor{})
		l, err := loader.New(ds, batchSize, o)
		require.NoError(t, err)

		from := rapid.IntRange(0, len(before[0])-2).Draw(t, "from")
		span, err := l.Span(l.StateAt(loader.Cursor{}), from, from+rapid.IntRange(1, 2).Draw(t, "steps"))
		require.NoError(t, err)
		o.Exclude = []loader.Exclusion{{Steps: []loader.Span{span}}}
		inside := func(b batch) bool {
			at := b.filled.Position - b.filled.Position%int64(batchSize*o.Shard.Count)
			return at >= span.From.Position && b.filled.Epoch == span.From.Epoch &&
				(b.filled.Epoch < span.To.Epoch || at < span.To.Position) ||
				b.filled.Epoch > span.From.Epoch && b.filled.Epoch == span.To.Epoch && at < span.To.Position
		}
		stop := rapid.IntRange(-1, from-1).Draw(t, "stop")
		after := loader.Cursor{}
		if stop >= 0 {
			after = before[0][stop].filled.After
		}
		now := runRanks(t, ds, batchSize, o, after)
		for rank := range now {
			var want []batch
			for _, b := range before[rank][stop+1:] {
				if !inside(b) {
					want = append(want, b)
				}
			}
			for i := range want {
				want[i].filled.LastOfEpoch = i == len(want)-1 || want[i+1].filled.Epoch > want[i].filled.Epoch
			}
			for i, b := range now[rank] {
				for row := b.filled.Valid; row < b.filled.N; row++ { // padding does not repeat them either
					if at := b.positions[row] % int64(n); inside(batch{filled: loader.Filled{Epoch: b.filled.Epoch, Position: at}}) {
						want[i].indices[row] = b.indices[row]
					}
				}
			}
			require.Equal(t, want, now[rank])
		}
		changed, err := loader.New(ds, batchSize, o)
		require.NoError(t, err)
		made := map[int]int{}
		for _, b := range runRanks(t, ds, batchSize, o, loader.Cursor{})[0] {
			made[b.filled.Epoch]++
		}
		for epoch, steps := range made {
			told, known := changed.BatchesFrom(loader.Cursor{Epoch: epoch})
			require.True(t, known)
			require.Equal(t, steps, told)
		}
	})
}

// With batches of another size the steps' borders are elsewhere: nothing of what was
// excluded is delivered all the same.
func TestExcludedStepsStayOutWithAnotherBatchSize(t *testing.T) {
	o := loader.Options{Epochs: 1, Exclude: []loader.Exclusion{{Steps: []loader.Span{{
		From: loader.Cursor{Position: 8}, To: loader.Cursor{Position: 12},
	}}}}}
	l := newNumbers(t, numbers{n: 20}, 5, o)
	batches, err := readAll(t, l, loader.Cursor{}, 2)
	require.NoError(t, err)
	var begins []int64
	for _, b := range batches {
		begins = append(begins, b.filled.Position)
	}
	require.Equal(t, []int64{0, 5, 12, 17}, begins, "a step that begins in the span begins behind it")
	require.Equal(t, []int64{5, 6, 7}, batches[1].indices[:3])
	require.NotContains(t, batches[1].indices[3:], []int64{8, 9})
	require.Equal(t, []int{0, 1, 2, 3}, []int{batches[0].filled.Batch, batches[1].filled.Batch, batches[2].filled.Batch, batches[3].filled.Batch})
}

func TestAStateIsForTheSameExclusionsAndMore(t *testing.T) {
	with := func(e ...loader.Exclusion) *loader.Loader {
		return newNumbers(t, numbers{n: 20}, 4, loader.Options{Seed: 1, Shuffle: true, Exclude: e})
	}
	a, b := loader.Exclusion{Samples: []int{3, 7}}, loader.Exclusion{Files: []string{"x"}}
	at := loader.Cursor{Position: 4}
	for _, c := range []struct {
		name     string
		saved    *loader.Loader
		restored *loader.Loader
		fits     bool
	}{
		{"more", with(a), with(a, b), true},
		{"more than none", with(), with(a, b), true},
		{"in another order, and twice", with(a), with(loader.Exclusion{Samples: []int{7, 3, 7}}), true},
		{"fewer", with(a, b), with(a), false},
		{"none", with(a), with(), false},
		{"another one", with(a), with(b), false},
		{"one changed", with(a), with(loader.Exclusion{Samples: []int{3, 7, 8}}), false},
		{"one before it", with(a), with(b, a), false},
	} {
		text, err := json.Marshal(c.saved.StateAt(at))
		require.NoError(t, err)
		var state loader.State
		require.NoError(t, json.Unmarshal(text, &state), c.name)
		err = c.restored.Check(state)
		if c.fits {
			require.NoError(t, err, c.name)
			continue
		}
		var wrong *loader.StateError
		require.ErrorAs(t, err, &wrong, c.name)
		require.Equal(t, "Excluded", wrong.Field)
	}
	text, err := json.Marshal(with().StateAt(at))
	require.NoError(t, err)
	require.NotContains(t, string(text), "excluded")
}

func TestExclusionsThatCannotBe(t *testing.T) {
	span := func(fromEpoch int, from int64, toEpoch int, to int64) []loader.Span {
		return []loader.Span{{From: loader.Cursor{Epoch: fromEpoch, Position: from}, To: loader.Cursor{Epoch: toEpoch, Position: to}}}
	}
	for name, c := range map[string]struct {
		exclude loader.Exclusion
		wrong   []string
	}{
		"samples":          {loader.Exclusion{Samples: []int{-1, 10}}, []string{"Exclude[0].Samples", "Exclude[0].Samples"}},
		"leaves":           {loader.Exclusion{Leaves: []loader.Leaf{{Source: 1}, {Index: 10}}}, []string{"Exclude[0].Leaves", "Exclude[0].Leaves"}},
		"no file":          {loader.Exclusion{Files: []string{""}}, []string{"Exclude[0].Files"}},
		"backwards":        {loader.Exclusion{Steps: span(1, 0, 0, 4)}, []string{"Exclude[0].Steps"}},
		"outside":          {loader.Exclusion{Steps: span(0, 0, 0, 11)}, []string{"Exclude[0].Steps"}},
		"all samples":      {loader.Exclusion{Samples: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, []string{"Exclude"}},
		"an epoch":         {loader.Exclusion{Steps: span(1, 0, 1, 10)}, []string{"Exclude"}},
		"an epoch between": {loader.Exclusion{Steps: span(0, 4, 2, 4)}, []string{"Exclude"}},
		"all but a rest":   {loader.Exclusion{Steps: span(1, 0, 1, 8)}, []string{"Exclude"}},
	} {
		_, err := loader.New(numbers{n: 10}, 4, loader.Options{Last: loader.Drop, Epochs: 3, Exclude: []loader.Exclusion{c.exclude}})
		require.Equal(t, c.wrong, options(err), name)
	}
	hidden := loader.FromFunc(10, numberFields, numbers{}.Read)
	_, err := loader.New(hidden, 4, loader.Options{Exclude: []loader.Exclusion{{Files: []string{"x"}}}})
	require.Equal(t, []string{"Exclude[0].Files"}, options(err))
	_, err = loader.NewIterable(loader.FromSeqFunc(numberFields, each(upTo(3)), encodeNumber), 2,
		loader.Options{Exclude: []loader.Exclusion{{}}})
	require.Equal(t, []string{"Exclude"}, options(err))
}

func TestAStandInThatCannotBeReadIsSubstituted(t *testing.T) {
	const n, excluded = 50, 13
	l := newNumbers(t, numbers{n: n}, 10, loader.Options{Epochs: 1, Exclude: []loader.Exclusion{{Samples: []int{excluded}}}})
	tried := slices.Collect(l.Candidates(0, excluded))
	span, err := l.Span(l.StateAt(loader.Cursor{}), 1, 2)
	require.NoError(t, err)
	standIn := which(t, l, span)[3]
	require.Equal(t, excluded, standIn.Excluded)
	require.NotEqual(t, standIn.Index, tried[0])

	bad := numbers{n: n, before: func(_ context.Context, i int, row *loader.Row) error {
		if row.Position() == excluded && i == standIn.Index {
			panic("unreadable")
		}
		return nil
	}}
	o := l.Options()
	o.OnError = loader.Substitute
	got, err := readAll(t, newNumbers(t, bad, 10, o), loader.Cursor{}, 2)
	require.NoError(t, err)
	require.Len(t, got[1].filled.Substituted, 1)
	s := got[1].filled.Substituted[0]
	require.Equal(t, standIn.Index, s.Sample)
	require.Equal(t, tried[0], s.Substitute)
	require.EqualValues(t, tried[0], got[1].indices[3])

	o.OnError = loader.Fail
	_, err = readAll(t, newNumbers(t, bad, 10, o), loader.Cursor{}, 2)
	var failed *loader.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, standIn.Index, failed.Sample)
	require.EqualValues(t, excluded, failed.Position)
}

// astray is a composition whose Part panics for a sample.
type astray struct{ joined }

func (d astray) Part(epoch uint64, index int) (part, at int, pass uint64) {
	if index == 5 {
		panic("astray")
	}
	return d.joined.Part(epoch, index)
}

func TestAPartThatPanicsFailsItsSample(t *testing.T) {
	ds := astray{joined{{n: 10}, {n: 10}}}
	for _, policy := range []loader.ErrorPolicy{loader.Fail, loader.Substitute} {
		l, err := loader.New(ds, 4, loader.Options{Epochs: 1, OnError: policy, Seed: 7, Exclude: []loader.Exclusion{{Leaves: []loader.Leaf{{}}}}})
		require.NoError(t, err)
		got, err := readAll(t, l, loader.Cursor{}, 2)
		if policy == loader.Substitute {
			require.NoError(t, err)
			require.Equal(t, 5, got[1].filled.Substituted[0].Sample)
			continue
		}
		var failed *loader.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 5, failed.Sample)
		var panicked *loader.PanicError
		require.ErrorAs(t, err, &panicked)
	}
}

func TestAllThatIsDrawnIsExcluded(t *testing.T) {
	ds := joined{{n: 10, file: "all"}, {n: 10, file: "all"}}
	l, err := loader.New(ds, 4, loader.Options{Epochs: 1, OnError: loader.Substitute, Exclude: []loader.Exclusion{{Files: []string{"all"}}}})
	require.NoError(t, err)
	_, err = readAll(t, l, loader.Cursor{}, 2)
	require.ErrorContains(t, err, "excluded, as are")
	span, err := l.Span(l.StateAt(loader.Cursor{}), 0, 1)
	require.NoError(t, err)
	for _, s := range which(t, l, span) {
		require.Equal(t, -1, s.Index)
	}
	require.Empty(t, slices.Collect(l.Candidates(0, 0)))
}

// BenchmarkExclude tells what it costs a sample to be asked whether it is excluded.
func BenchmarkExclude(b *testing.B) {
	const samples, batch = 60000, 256
	ds := newImages(784, samples)
	for _, excluded := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("excluded=%d", excluded), func(b *testing.B) {
			o := loader.Options{Workers: 1, Epochs: 1, Shuffle: true}
			if excluded > 0 {
				o.Exclude = []loader.Exclusion{{}}
			}
			for i := range excluded {
				o.Exclude[0].Samples = append(o.Exclude[0].Samples, i*samples/excluded)
			}
			l, err := loader.New(ds, batch, o)
			require.NoError(b, err)
			mem, err := loader.NewHeap(l.Layout().Size(), benchmarkSlots)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				fillEpoch(b, l, mem)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*samples), "ns/sample")
		})
	}
}

// BenchmarkWhich tells what it costs to tell of a sample what it is.
func BenchmarkWhich(b *testing.B) {
	l, err := loader.New(numbers{n: 1 << 20}, 256, loader.Options{Shuffle: true})
	require.NoError(b, err)
	span, err := l.Span(l.StateAt(loader.Cursor{}), 1000, 1100)
	require.NoError(b, err)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		samples, err := l.Which(span)
		require.NoError(b, err)
		for range samples {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
}

// The loss rises suddenly at a step, because of samples that should not be there. They are
// found without reading the data, and training goes on from before the step without them.
func ExampleExclusion() {
	const rows, spike = 4, 7
	ds := loader.FromFunc(40, []loader.Field{{Name: "x", DType: dtype.Float32}},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", float32(i)) })
	options := loader.Options{Shuffle: true, Seed: 1, Epochs: 1}
	ld, err := loader.New(ds, rows, options)
	if err != nil {
		log.Fatal(err)
	}
	saved := ld.StateAt(loader.Cursor{Position: 5 * rows}) // before step 5

	span, err := ld.Span(saved, spike-5, spike-5+1)
	if err != nil {
		log.Fatal(err)
	}
	samples, err := ld.Which(span)
	if err != nil {
		log.Fatal(err)
	}
	var bad loader.Exclusion
	for s := range samples {
		fmt.Println("step", s.Batch, "row", s.Row, "is sample", s.Index)
		if s.Index < 10 { // looks wrong
			bad.Samples = append(bad.Samples, s.Index)
		}
	}
	options.Exclude = append(options.Exclude, bad)

	ld, err = loader.New(ds, rows, options)
	if err := errors.Join(err, ld.Check(saved)); err != nil {
		log.Fatal(err)
	}
	samples, err = ld.Which(span)
	if err != nil {
		log.Fatal(err)
	}
	for s := range samples {
		if s.Excluded >= 0 {
			fmt.Println("sample", s.Index, "in the place of", s.Excluded)
		}
	}
	// Output:
	// step 7 row 0 is sample 9
	// step 7 row 1 is sample 38
	// step 7 row 2 is sample 24
	// step 7 row 3 is sample 32
	// sample 7 in the place of 9
}
