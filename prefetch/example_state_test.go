package prefetch_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A checkpoint in the middle of an epoch, as JSON: another process, with other workers,
// goes on at the very next sample.
func ExamplePrefetcher_State() {
	whole := open(2, loader.Options{Shuffle: true, Seed: 5, Epochs: 1})
	show(whole, "x")
	check(whole.Close())

	first := open(2, loader.Options{Shuffle: true, Seed: 5, Epochs: 1})
	var saved []byte
	for batch, err := range first.All(context.Background()) {
		check(err)
		x, err := prefetch.Column[float32](batch, "x")
		check(err)
		fmt.Print(x)
		if batch.Position().Batch == 1 {
			saved, err = json.Marshal(first.State()) // the batch in hand counts as delivered
			check(err)
			break
		}
	}
	check(first.Close())

	second := open(2, loader.Options{Shuffle: true, Seed: 5, Epochs: 1, Workers: 7})
	var state loader.State
	check(json.Unmarshal(saved, &state))
	check(second.Restore(state))
	show(second, "x")
	check(second.Close())
	// Output:
	// [0 5][9 8][6 7][3 1][4 2]
	// [0 5][9 8][6 7][3 1][4 2]
}
