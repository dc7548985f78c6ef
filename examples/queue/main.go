// Queue answers requests in batches: what comes together is computed together, and no
// request waits for others longer than 2 ms. A request that is malformed gets an error, and
// does nothing to its neighbours.
//
//	go run ./examples/queue
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run sends some requests, in bursts, and prints the answers.
func run(ctx context.Context) error {
	queue := make(chan request)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, queue, 2*time.Millisecond) }()
	for _, burst := range [][]string{{"1", "2", "3", "4", "5", "6"}, {"seven"}, {"8", "9"}} {
		answers := make([]chan answer, len(burst))
		for i, text := range burst {
			answers[i] = make(chan answer, 1)
			queue <- request{text, answers[i]}
		}
		for i, text := range burst {
			a := <-answers[i]
			fmt.Println(text, "->", a.y, a.err)
		}
	}
	close(queue)
	return <-served
}
