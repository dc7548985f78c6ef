package prefetch_test

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// How fast would the steps be if reading cost nothing? Replay stands where the Loader does,
// and reads two batches once. Time as many steps as you like.
func Example_replay() {
	ctx := context.Background()
	ld, err := loader.New(Squares{}, 4, loader.Options{})
	check(err)
	replay, err := loader.Replay(ctx, ld, 2)
	check(err)
	pf, err := prefetch.NewHost(replay, prefetch.Options{})
	check(err)
	defer pf.Close()
	steps, sum := 0, float32(0)
	for batch, err := range pf.All(ctx) {
		check(err)
		x, err := prefetch.Column[float32](batch, "x")
		check(err)
		sum += x[0] // 0 or 4
		if steps++; steps == 1000 {
			break
		}
	}
	fmt.Println(steps, "steps over", replay.BatchSize(), "samples,", sum > 0)
	// Output: 1000 steps over 4 samples, true
}
