//go:build race || 386 || arm || mips || mipsle

package loader

import "sync/atomic"

// set notes the position that the worker goes to.
func (p *progress) set(position int64) { atomic.StoreInt64(&p.position, position) }
