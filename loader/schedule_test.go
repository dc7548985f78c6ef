package loader_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// drawScheduled draws a world whose batch size changes, with all sizes even.
func drawScheduled(t *rapid.T) (n, batchSize int, o loader.Options) {
	_, batchSize, o = drawWorld(t)
	batchSize *= 2
	largest, at := batchSize, int64(0)
	for range rapid.IntRange(1, 4).Draw(t, "sizes") {
		at += int64(rapid.IntRange(1, 60).Draw(t, "sample"))
		size := 2 * rapid.IntRange(1, 5).Draw(t, "size")
		largest = max(largest, size)
		o.BatchSizes = append(o.BatchSizes, loader.SizeFrom{Sample: at, BatchSize: size})
	}
	o.Epochs = 3
	global := largest * o.Shard.Count
	least := 1
	if o.Last == loader.Drop {
		least = global
	}
	return rapid.IntRange(least, 3*global+1).Draw(t, "n"), batchSize, o
}

// halved is the same schedule with half the batch sizes for twice the ranks.
func halved(batchSize int, o loader.Options) (int, loader.Options) {
	o.BatchSizes = slices.Clone(o.BatchSizes)
	for i := range o.BatchSizes {
		o.BatchSizes[i].BatchSize /= 2
	}
	o.Shard.Count *= 2
	return batchSize / 2, o
}

func TestBatchSizesFollowTheirSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawScheduled(t)
		ranks := runRanks(t, numbers{n: n}, batchSize, o, loader.Cursor{})
		at := loader.Cursor{}
		for step, b := range ranks[0] {
			if at.Epoch != b.filled.Epoch {
				left := int64(n) - at.Position
				require.True(t, left == 0 || o.Last == loader.Drop, "an epoch ends with its samples")
				at = loader.Cursor{Epoch: b.filled.Epoch}
			}
			size := batchSize
			for _, s := range o.BatchSizes {
				if int64(at.Epoch*n)+at.Position >= s.Sample {
					size = s.BatchSize
				}
			}
			valid := 0
			for rank := range ranks {
				b := ranks[rank][step]
				require.Equal(t, at.Position+int64(rank*size), b.filled.Position)
				require.LessOrEqual(t, b.filled.N, size)
				if o.Last != loader.Exact {
					require.Equal(t, size, b.filled.N)
				}
				valid += b.filled.Valid
			}
			require.EqualValues(t, min(int64(size*len(ranks)), int64(n)-at.Position), valid)
			at.Position += int64(valid)
			require.Equal(t, at, b.filled.After)
		}
	})
}

func TestAScheduleGoesOnWhereItStopped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batchSize, o := drawScheduled(t)
		whole := runRanks(t, numbers{n: n}, batchSize, o, loader.Cursor{})
		stop := rapid.IntRange(0, len(whole[0])-1).Draw(t, "stop")
		after := whole[0][stop].filled.After
		rest := runRanks(t, numbers{n: n}, batchSize, o, after)
		for rank := range whole {
			require.Equal(t, whole[rank], append(whole[rank][:stop+1:stop+1], rest[rank]...))
		}
		batchSize, o = halved(batchSize, o)
		want := globals(whole)
		require.Equal(t, want, append(want[:stop+1:stop+1], globals(runRanks(t, numbers{n: n}, batchSize, o, after))...),
			"other ranks with the same global batches make the same steps")
	})
}

func TestSchedulesThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []loader.SizeFrom
		wrong []string
	}{
		"from the beginning": {[]loader.SizeFrom{{Sample: 0, BatchSize: 2}}, []string{"BatchSizes[0].Sample"}},
		"negative":           {[]loader.SizeFrom{{Sample: -1, BatchSize: -2}}, []string{"BatchSizes[0].BatchSize", "BatchSizes[0].Sample"}},
		"descending":         {[]loader.SizeFrom{{Sample: 8, BatchSize: 2}, {Sample: 8, BatchSize: 3}}, []string{"BatchSizes[1].Sample"}},
		"too large":          {[]loader.SizeFrom{{Sample: 8, BatchSize: math.MaxInt32}}, []string{"BatchSizes[0].BatchSize"}},
		"far too large":      {[]loader.SizeFrom{{Sample: math.MaxInt64, BatchSize: math.MaxInt}}, []string{"BatchSizes[0].BatchSize"}},
	} {
		_, err := loader.New(numbers{n: 100}, 4, loader.Options{Last: loader.Drop, Shard: loader.Shard{Count: 2}, BatchSizes: c.sizes})
		require.Subset(t, options(err), c.wrong, name)
	}
	_, err := loader.New(numbers{n: 9}, 4, loader.Options{Last: loader.Drop, BatchSizes: []loader.SizeFrom{{Sample: 100, BatchSize: 10}}})
	require.ErrorIs(t, err, loader.ErrTooFewSamples, "later epochs would be empty")
	_, err = loader.NewIterable(loader.FromSeqFunc(numberFields, each(upTo(3)), encodeNumber), 2,
		loader.Options{BatchSizes: []loader.SizeFrom{{Sample: 100, BatchSize: 10}}})
	require.Equal(t, []string{"BatchSizes"}, options(err))
}

// Training begins with small batches. Each doubling is stated in samples, so it stays where
// it is when training is resumed, and with any number of ranks.
func ExampleSizeFrom() {
	ds := loader.FromFunc(20, []loader.Field{{Name: "x", DType: dtype.Float32}},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", float32(i)) })
	ld, err := loader.New(ds, 2, loader.Options{Epochs: 1, BatchSizes: []loader.SizeFrom{
		{Sample: 4, BatchSize: 4}, {Sample: 10, BatchSize: 8},
	}})
	if err != nil {
		log.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), loader.Cursor{}, mem)
	defer run.Close()
	for {
		batch, err := run.Next(context.Background())
		if err != nil {
			break
		}
		fmt.Println("from sample", batch.Position, "rows", batch.N)
		mem.Put(batch.Slot)
	}
	// Output:
	// from sample 0 rows 2
	// from sample 2 rows 2
	// from sample 4 rows 4
	// from sample 8 rows 4
	// from sample 12 rows 8
}
