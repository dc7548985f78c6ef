package loader

import (
	"iter"
	"time"
)

// Channel is the values of a channel, for FromSeq: a queue of requests becomes batches. Where
// no batch is full when a value has waited for so long, it yields Flush, and what there is is
// delivered; so a value waits for others no longer than that, and may wait less. 0 or less
// delivers as soon as the channel is empty.
//
//	it := loader.FromSeq(fields, loader.Channel(requests, 2*time.Millisecond), encode)
//
// It ends when the channel is closed. Loader.Close does not wake a receive: close the channel
// before.
func Channel[S any](values <-chan S, wait time.Duration) iter.Seq2[S, error] {
	return func(yield func(S, error) bool) {
		timer := time.NewTimer(wait)
		timer.Stop()
		defer timer.Stop()
		for waiting := false; ; {
			select {
			case value, ok := <-values:
				if !ok || !yield(value, nil) {
					return
				}
				if !waiting {
					timer.Reset(wait)
				}
				waiting = true
			case <-timer.C:
				waiting = false
				if !yield(*new(S), Flush) {
					return
				}
			}
		}
	}
}
