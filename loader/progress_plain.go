//go:build !race && !386 && !arm && !mips && !mipsle

package loader

// set notes the position that the worker goes to.
func (p *progress) set(position int64) { p.position = position }
