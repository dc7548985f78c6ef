//go:build !race && !386 && !arm && !mips && !mipsle

package loader

import "sync/atomic"

// progress is the position that a worker is at, for a report on one that hangs. It
// is written before every sample and read almost never.
//
// An atomic store waits until all stores before it have reached the cache: behind
// the copy of a small sample that costs more than the copy. What reads it has no
// use for order, only for a whole value, which an aligned word is on every
// platform. Under the race detector, which can't know that, and where a word is
// half of it, the store is atomic.
type progress struct{ position int64 }

// set notes the position that the worker goes to.
func (p *progress) set(position int64) { p.position = position }

// at is the position last set.
func (p *progress) at() int64 { return atomic.LoadInt64(&p.position) }
