package pinnedpool

import "github.com/leat-go/leat/internal/invariants"

// In a build with the tag invariants the memory of a free buffer is poison, and what
// is being copied is remembered: a write by somebody who doesn't hold the buffer is
// found (I1), and so is a read, whose data are NaNs in every floating-point type.

const poisonByte = 0xff

// poison fills the memory of a buffer that has become free.
func (b *Buffer) poison() {
	if !invariants.Enabled {
		return
	}
	mem := b.Bytes()
	for i := range mem {
		mem[i] = poisonByte
	}
}

// untouched reports a write to a buffer while it was free.
func (b *Buffer) untouched() error {
	if !invariants.Enabled {
		return nil
	}
	for i, is := range b.Bytes() {
		if is != poisonByte {
			return &OverwriteError{Buffer: b.id, Offset: int64(i)}
		}
	}
	return nil
}

// seal remembers what a buffer in flight holds.
func (b *Buffer) seal() {
	if invariants.Enabled {
		b.sealed = append(b.sealed[:0], b.Bytes()...)
	}
}

// unchanged reports a write to a buffer while it was in flight.
func (b *Buffer) unchanged() error {
	if !invariants.Enabled {
		return nil
	}
	for i, is := range b.Bytes() {
		if is != b.sealed[i] {
			return &OverwriteError{Buffer: b.id, Offset: int64(i), InFlight: true}
		}
	}
	return nil
}
