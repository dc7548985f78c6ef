package prefetch_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

var number = []loader.Field{{Name: "x", DType: dtype.Float32}}

func parse(_ context.Context, line string, row *loader.Row) error {
	x, err := strconv.ParseFloat(line, 32)
	if err != nil {
		return err
	}
	return loader.Write(row, "x", float32(x))
}

// A file that is read from its beginning in every epoch, through a shuffle buffer: all
// that is random follows from the pass, so that an epoch can be resumed.
func Example_shuffleBuffer() {
	const file = "1\n2\n3\n4\n5\n6\n7\n"
	lines := func(_ context.Context, pass loader.Pass) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			random := rand.New(rand.NewPCG(pass.Seed, uint64(pass.Epoch)))
			scanner := bufio.NewScanner(strings.NewReader(file))
			var buffer []string
			for more := true; more || len(buffer) > 0; {
				if more = more && scanner.Scan(); more {
					buffer = append(buffer, scanner.Text()) // a copy: Bytes would change
				}
				if len(buffer) == 0 || more && len(buffer) < 4 {
					continue
				}
				i, last := random.IntN(len(buffer)), len(buffer)-1
				line := buffer[i]
				buffer[i], buffer = buffer[last], buffer[:last]
				if !yield(line, nil) {
					return
				}
			}
			if err := scanner.Err(); err != nil {
				yield("", err)
			}
		}
	}
	open := func() *prefetch.Prefetcher {
		ld, err := loader.NewIterable(loader.FromSeqFunc(number, lines, parse), 2, loader.Options{Seed: 1, Epochs: 2})
		check(err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		check(err)
		return pf
	}
	first, second := open(), open()
	defer first.Close()
	defer second.Close()
	for batch, err := range first.All(context.Background()) {
		check(err)
		x, err := prefetch.Column[float32](batch, "x")
		check(err)
		fmt.Print(x)
		if batch.Position().Epoch == 1 {
			fmt.Println()
			break
		}
	}
	check(second.Restore(first.State())) // in the middle of the second epoch
	show(second, "x")
	// Output:
	// [4 3][5 1][6 7][2][1 5]
	// [4 6][7 3][2]
}

// Requests from a channel. One of them is malformed: its error ends the range, and the
// next range goes on with the request behind it.
func Example_channel() {
	requests := make(chan string, 8)
	for _, request := range []string{"1", "2", "three", "4", "5"} {
		requests <- request
	}
	close(requests)
	source := loader.FromSeq(number, loader.Channel(requests, time.Second), parse)
	ld, err := loader.NewIterable(source, 2, loader.Options{})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	check(err)
	defer pf.Close()
	show(pf, "x")
	show(pf, "x")
	// Output:
	// [1 2]loader: epoch 0, batch 1, sample 2 (position 2): encode: strconv.ParseFloat: parsing "three": invalid syntax
	// [4 5]
}
