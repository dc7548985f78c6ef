//go:build race || 386 || arm || mips || mipsle

package loader

import "sync/atomic"

// progress is the position that a worker is at.
type progress struct{ position atomic.Int64 }

// set notes the position that the worker goes to.
func (p *progress) set(position int64) { p.position.Store(position) }

// at is the position last set.
func (p *progress) at() int64 { return p.position.Load() }
