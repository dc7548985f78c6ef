package stream_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"math/rand/v2"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// show prints a pass of a stream, shard by shard.
func show[T any](s stream.Stream[T]) {
	for shard := range s.Shards() {
		var values []T
		for item, err := range s.Items(context.Background(), loader.Pass{Seed: 1}, shard) {
			if err != nil {
				fmt.Println(err)
				continue
			}
			values = append(values, item.Value)
		}
		fmt.Println("shard", shard, values)
	}
}

func ExampleMap() {
	numbers := stream.FromSlice([]int{1, 2, 3, 4, 5}, 2)
	show(stream.Map(numbers, func(_ context.Context, n int) (string, error) {
		if n == 3 {
			return "", fmt.Errorf("%w: three is left out", loader.Skip)
		}
		return fmt.Sprint("no ", n), nil
	}))
	// Output:
	// shard 0 [no 1 no 5]
	// shard 1 [no 2 no 4]
}

func ExampleMapRand() {
	tosses := stream.FromSlice(make([]int, 6), 2)
	show(stream.MapRand(tosses, func(_ context.Context, random *rand.Rand, _ int) (int, error) {
		return random.IntN(6) + 1, nil
	}))
	// Output:
	// shard 0 [4 6 3]
	// shard 1 [1 6 3]
}

func ExampleMapScratch() {
	words := stream.FromSlice([]string{"b", "a", "c"}, 1)
	show(stream.MapScratch(words, func() []byte { return make([]byte, 0, 64) },
		func(_ context.Context, scratch []byte, word string) (int, error) {
			scratch = append(append(scratch, word...), word...)
			return len(scratch), nil
		}))
	// Output:
	// shard 0 [2 2 2]
}

func ExampleFilter() {
	numbers := stream.FromSlice([]int{1, 2, 3, 4, 5, 6}, 1)
	show(stream.Filter(numbers, func(n int) bool { return n%2 == 0 }))
	// Output:
	// shard 0 [2 4 6]
}

// The first three are taken for validation, the rest is for training.
func ExampleTake() {
	numbers := stream.FromSlice([]int{0, 1, 2, 3, 4, 5, 6}, 2)
	show(stream.Take(numbers, 3))
	show(stream.Skip(numbers, 3))
	// Output:
	// shard 0 [0 2]
	// shard 1 [1]
	// shard 0 [4 6]
	// shard 1 [3 5]
}

func ExampleConcat() {
	show(stream.Concat(stream.FromSlice([]int{1, 2, 3}, 1), stream.FromSlice([]int{10, 20}, 1)))
	// Output:
	// shard 0 [1 2 3 10 20]
}

// Each repetition is in an order of its own.
func ExampleRepeat() {
	numbers := stream.FromSlice([]int{1, 2, 3, 4}, 1)
	show(stream.Repeat(stream.Shuffle(numbers, 4), 2))
	// Output:
	// shard 0 [3 4 2 1 4 2 3 1]
}

func ExampleFromSeqs() {
	shards := [][]string{{"to", "be"}, {"or", "not"}}
	show(stream.FromSeqs(len(shards), func(_ context.Context, _ loader.Pass, shard int) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for _, word := range shards[shard] {
				if !yield(word, nil) {
					return
				}
			}
		}
	}))
	// Output:
	// shard 0 [to be]
	// shard 1 [or not]
}

// A reading is stopped behind two values and gone on with elsewhere: the buffer of the
// shuffle is filled again with what it held.
func ExampleShuffle() {
	numbers := stream.Shuffle(stream.FromSlice([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1), 4)
	ctx, pass := context.Background(), loader.Pass{Seed: 1}
	r, err := numbers.Open(ctx, pass, 0, nil)
	if err != nil {
		panic(err)
	}
	var item stream.Item[int]
	for range 2 {
		_, _ = r.Next(ctx, &item)
		fmt.Println(item.Value)
	}
	mark, _ := r.AppendMark(nil)
	fmt.Println(string(mark), r.Close())

	r, err = numbers.Open(ctx, pass, 0, mark)
	if err != nil {
		panic(err)
	}
	_, _ = r.Next(ctx, &item)
	fmt.Println(item.Value, r.Close())
	// Output:
	// 2
	// 3
	// {"drawn":2,"at":null,"from":0,"read":6} <nil>
	// 4 <nil>
}

// A dataset with random access is the source of a stream by its indices.
func ExampleEncode_dataset() {
	fields := []loader.Field{{Name: "y", DType: dtype.Int64}}
	squares := loader.FromFunc(6, fields, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "y", int64(i*i))
	})
	odd := stream.Filter(stream.FromSlice([]int{0, 1, 2, 3, 4, 5}, 1), func(i int) bool { return i%2 == 1 })
	ld, err := loader.NewStream(stream.Encode(odd, squares.Fields(), squares.Read), 3, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()
	for batch, err := range pf.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(prefetch.Column[int64](batch, "y"))
	}
	// Output: [1 9 25] <nil>
}
