package loader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"math/rand/v2"
	"strconv"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Points of a plane with a class each, in batches of three.
func Example() {
	type point struct {
		x, y  float32
		class int32
	}
	points := []point{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {1, 1, 0}}
	ds := loader.FromSlice(points,
		[]loader.Field{
			{Name: "xy", DType: dtype.Float32, Shape: []int{2}},
			{Name: "class", DType: dtype.Int32},
		},
		func(_ context.Context, p point, row *loader.Row) error {
			return errors.Join(loader.Write(row, "xy", p.x, p.y), loader.Write(row, "class", p.class))
		})
	ld, err := loader.New(ds, 3, loader.Options{Shuffle: true, Seed: 1, Epochs: 2})
	if err != nil {
		log.Fatal(err)
	}

	// Package prefetch runs a loader over pinned memory. This is what it does.
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), loader.Cursor{}, mem)
	defer run.Close()
	for {
		batch, err := run.Next(context.Background())
		switch {
		case errors.Is(err, loader.ErrEpochEnd):
			fmt.Println("end of epoch")
			continue
		case errors.Is(err, loader.ErrEnd):
			return
		case err != nil:
			log.Fatal(err)
		}
		fmt.Println("epoch", batch.Epoch, "batch", batch.Batch, "of", batch.N, "samples:",
			len(ld.Layout().Rows(0, batch)), "bytes of xy")
		mem.Put(batch.Slot)
	}
	// Output:
	// epoch 0 batch 0 of 3 samples: 24 bytes of xy
	// epoch 0 batch 1 of 1 samples: 8 bytes of xy
	// end of epoch
	// epoch 1 batch 0 of 3 samples: 24 bytes of xy
	// epoch 1 batch 1 of 1 samples: 8 bytes of xy
	// end of epoch
}

// Requests from a channel, of which one is malformed: leaving the run and going on
// loses none of the others.
func ExampleFromSeq() {
	queue := make(chan string, 5)
	for _, request := range []string{"1", "2", "three", "4", "5"} {
		queue <- request
	}
	close(queue)
	it := loader.FromSeq(
		[]loader.Field{{Name: "x", DType: dtype.Float64}},
		func(yield func(string, error) bool) {
			for request := range queue {
				if !yield(request, nil) {
					return
				}
			}
		},
		func(_ context.Context, request string, row *loader.Row) error {
			x, err := strconv.ParseFloat(request, 64)
			if err != nil {
				return err
			}
			return loader.Write(row, "x", x)
		})
	ld, err := loader.NewIterable(it, 2, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close() // as Prefetcher.Close does
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	var at loader.Cursor
	for range 2 {
		run := ld.Start(context.Background(), at, mem)
		for {
			batch, err := run.Next(context.Background())
			if err != nil {
				fmt.Println(err)
				break
			}
			fmt.Println("requests", batch.Position, "to", batch.After.Position)
			at = batch.After
			mem.Put(batch.Slot)
		}
		if err := run.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// requests 0 to 2
	// loader: epoch 0, batch 1, sample 2 (position 2): encode: strconv.ParseFloat: parsing "three": invalid syntax
	// requests 2 to 4
	// leat: end of epoch
}

// Lines of text in an order of its own for each epoch, which is the same again when an
// epoch is gone on with.
func ExampleFromSeqFunc() {
	lines := []string{"to be", "or not", "to be", "that is"}
	it := loader.FromSeqFunc(
		[]loader.Field{{Name: "text", DType: dtype.Uint8, Shape: []int{7}}},
		func(_ context.Context, pass loader.Pass) iter.Seq2[string, error] {
			random := rand.New(rand.NewPCG(pass.Seed, uint64(pass.Epoch)))
			return func(yield func(string, error) bool) {
				for _, i := range random.Perm(len(lines)) {
					if !yield(lines[i], nil) {
						return
					}
				}
			}
		},
		func(_ context.Context, line string, row *loader.Row) error {
			text := row.Bytes("text")
			clear(text[copy(text, line):]) // every byte is written: slots are used again
			return nil
		})
	ld, err := loader.NewIterable(it, 2, loader.Options{Epochs: 1, Seed: 3})
	if err != nil {
		log.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, position := range []int64{0, 2} { // from the beginning, and from the middle
		run := ld.Start(context.Background(), loader.Cursor{Position: position}, mem)
		for {
			batch, err := run.Next(context.Background())
			if err != nil {
				fmt.Println(err)
				break
			}
			fmt.Printf("%q\n", ld.Layout().Rows(0, batch))
			mem.Put(batch.Slot)
		}
		if err := run.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// "or not\x00to be\x00\x00"
	// "to be\x00\x00that is"
	// leat: end of epoch
	// "to be\x00\x00that is"
	// leat: end of epoch
}

// A state saved by one rank of two is gone on from by one of four.
func ExampleLoader_StateAt() {
	ds := loader.FromSlice(make([]byte, 100),
		[]loader.Field{{Name: "x", DType: dtype.Uint8}},
		func(_ context.Context, b byte, row *loader.Row) error {
			return loader.Write(row, "x", b)
		})
	two := loader.Options{Last: loader.Drop, Shard: loader.Shard{Index: 0, Count: 2}}
	ld, err := loader.New(ds, 8, two)
	if err != nil {
		log.Fatal(err)
	}
	state := ld.StateAt(loader.Cursor{Epoch: 3, Position: 32})

	four := two
	four.Shard.Count = 4
	ld, err = loader.New(ds, 4, four)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ld.Check(state), "epoch", state.Epoch, "position", state.Position)
	// Output:
	// <nil> epoch 3 position 32
}

// The order of an epoch is known without reading anything.
func ExampleLoader_Order() {
	ds := loader.FromFunc(5, []loader.Field{{Name: "x", DType: dtype.Int64}},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", int64(i)) })
	ld, err := loader.New(ds, 2, loader.Options{Shuffle: true, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	order := make([]int, 5)
	for epoch := range 3 {
		ld.Order(epoch).Fill(order, 0)
		fmt.Println(order, "begins with", ld.Order(epoch).At(0))
	}
	// Output:
	// [0 3 2 4 1] begins with 0
	// [1 3 0 2 4] begins with 1
	// [1 3 0 4 2] begins with 1
}

// show prints the batches of what is left of an epoch, each of one float32 field. A
// program would let package prefetch deliver them.
func show(ld *loader.Loader, at loader.Cursor) {
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), at, mem)
	defer run.Close()
	for {
		batch, err := run.Next(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(dtype.As[float32](ld.Layout().Rows(0, batch)))
		mem.Put(batch.Slot)
	}
}

func ExampleFromFunc() {
	squares := loader.FromFunc(5, []loader.Field{{Name: "y", DType: dtype.Float32}},
		func(_ context.Context, i int, row *loader.Row) error {
			return loader.Write(row, "y", float32(i*i))
		})
	ld, err := loader.New(squares, 2, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	show(ld, loader.Cursor{})
	// Output:
	// [0 1]
	// [4 9]
	// [16]
	// leat: end of epoch
}

func ExampleFromSlice() {
	words := []string{"to", "be", "or", "not"}
	lengths := loader.FromSlice(words, []loader.Field{{Name: "length", DType: dtype.Float32}},
		func(_ context.Context, word string, row *loader.Row) error {
			return loader.Write(row, "length", float32(len(word)))
		})
	ld, err := loader.New(lengths, 3, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	show(ld, loader.Cursor{})
	// Output:
	// [2 2 2]
	// [3]
	// leat: end of epoch
}

// A value of another length than its field's is an error that names the sample.
func ExampleWrite() {
	ragged := [][]float32{{1, 2}, {3, 4}, {5, 6, 7}}
	pairs := loader.FromSlice(ragged, []loader.Field{{Name: "pair", DType: dtype.Float32, Shape: []int{2}}},
		func(_ context.Context, pair []float32, row *loader.Row) error {
			return loader.Write(row, "pair", pair...)
		})
	ld, err := loader.New(pairs, 2, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	show(ld, loader.Cursor{})
	// Output:
	// [1 2 3 4]
	// loader: epoch 0, batch 1, sample 2 (position 2): read: a value of 3 elements for field pair float32[2], want 2
}

// Two ranks share each global batch of four samples. The last one is short, and Exact
// gives it out without padding: both ranks make the same number of steps.
func ExampleShard() {
	numbers := loader.FromFunc(7, []loader.Field{{Name: "x", DType: dtype.Float32}},
		func(_ context.Context, i int, row *loader.Row) error {
			return loader.Write(row, "x", float32(i))
		})
	for rank := range 2 {
		ld, err := loader.New(numbers, 2, loader.Options{Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Index: rank, Count: 2}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("rank", rank)
		show(ld, loader.Cursor{})
	}
	// Output:
	// rank 0
	// [0 1]
	// [4 5]
	// leat: end of epoch
	// rank 1
	// [2 3]
	// [6]
	// leat: end of epoch
}

// A State is saved as JSON; another process goes on from it, here with another batch size.
func ExampleState() {
	numbers := loader.FromFunc(7, []loader.Field{{Name: "x", DType: dtype.Float32}},
		func(_ context.Context, i int, row *loader.Row) error {
			return loader.Write(row, "x", float32(i))
		})
	ld, err := loader.New(numbers, 2, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	saved, err := json.Marshal(ld.StateAt(loader.Cursor{Position: 2})) // as Prefetcher.State gives it
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(saved))

	var state loader.State
	if err := json.Unmarshal(saved, &state); err != nil {
		log.Fatal(err)
	}
	ld, err = loader.New(numbers, 3, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	if err := ld.Check(state); err != nil { // as Prefetcher.Restore does
		log.Fatal(err)
	}
	show(ld, state.Cursor())
	// Output:
	// {"version":3,"samples":7,"fields":"x float32","fingerprint":"2348899409854792029","seed":"0","shuffle":false,"epoch":0,"position":2}
	// [2 3 4]
	// [5 6]
	// leat: end of epoch
}

// Sentences of different lengths: each batch is as wide as its own longest.
func ExampleRagged() {
	sentences := [][]uint16{{11, 12, 13}, {21}, {31, 32, 33, 34, 35}, {}}
	fields := []loader.Field{{Name: "tokens", DType: dtype.Uint16, Shape: []int{2048}, Ragged: &loader.Ragged{Length: "length"}}}
	ds := loader.FromSlice(sentences, fields, func(_ context.Context, tokens []uint16, row *loader.Row) error {
		return loader.Write(row, "tokens", tokens...)
	})
	ld, err := loader.New(ds, 2, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 1)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), loader.Cursor{}, mem)
	defer run.Close()
	for {
		batch, err := run.Next(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		tokens, lengths := ld.Layout().Rows(0, batch), ld.Layout().Rows(1, batch)
		fmt.Println(batch.Extent(0), dtype.As[uint16](tokens), dtype.As[int32](lengths))
		mem.Put(batch.Slot)
	}
	// Output:
	// 3 [11 12 13 21 0 0] [3 1]
	// 5 [31 32 33 34 35 0 0 0 0 0] [5 0]
	// leat: end of epoch
}

// A sample that is made in its place says how long it became.
func ExampleRow_SetLen() {
	fields := []loader.Field{{Name: "countdown", DType: dtype.Uint8, Shape: []int{10}, Ragged: &loader.Ragged{Offsets: "begin"}}}
	ds := loader.FromFunc(3, fields, func(_ context.Context, i int, row *loader.Row) error {
		to := row.Bytes("countdown")
		for k := range i {
			to[k] = byte(i - k)
		}
		return row.SetLen("countdown", i)
	})
	ld, err := loader.New(ds, 3, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 1)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), loader.Cursor{}, mem)
	defer run.Close()
	batch, err := run.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ld.Layout().Rows(0, batch), dtype.As[int32](ld.Layout().Rows(1, batch)))
	// Output: [1 2 1] [0 0 1 3]
}

// A live source says when it has no other sample for now.
func ExampleFlush() {
	requests := func(yield func(int, error) bool) {
		for _, waiting := range [][]int{{1, 2, 3, 4, 5}, {6}, {7, 8}} {
			for _, request := range waiting {
				if !yield(request, nil) {
					return
				}
			}
			if !yield(0, loader.Flush) {
				return
			}
		}
	}
	source := loader.FromSeq([]loader.Field{{Name: "request", DType: dtype.Int64}}, requests,
		func(_ context.Context, request int, row *loader.Row) error {
			return loader.Write(row, "request", int64(request))
		})
	ld, err := loader.NewIterable(source, 4, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), loader.Cursor{}, mem)
	defer run.Close()
	for {
		batch, err := run.Next(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch.N, "requests")
		mem.Put(batch.Slot)
	}
	// Output:
	// 4 requests
	// 1 requests
	// 1 requests
	// 2 requests
	// leat: end of epoch
}
