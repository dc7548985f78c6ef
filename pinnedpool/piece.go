package pinnedpool

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// A piece is one allocation, in which neighbours lie.
type piece struct {
	host   *device.HostBuffer
	bytes  int64
	stride int64 // bytes from one neighbour to the next
	first  int   // the ID of the first neighbour
	size   int   // how many neighbours there are
	left   int   // and how many of them are not closed; guarded by Pool.closing
}

// alignment of a buffer among neighbours, that of a device allocation.
const alignment = 256

// stride is the distance of two neighbours.
func (o Options) stride(slotBytes int64) int64 {
	return (slotBytes + alignment - 1) &^ (alignment - 1)
}

// pieceBytes is the memory that n neighbours take.
func (o Options) pieceBytes(n int, slotBytes int64) int64 {
	return int64(n-1)*o.stride(slotBytes) + slotBytes
}

// neighbours is how many of them lie in a piece of so many bytes.
func (o Options) neighbours(bytes, slotBytes int64) int64 {
	if bytes < slotBytes {
		return 0
	}
	return 1 + (bytes-slotBytes)/o.stride(slotBytes)
}

// fit is how many of so many slots the budget allows, worked out before a page is
// touched.
func (o Options) fit(slots int, slotBytes int64) int {
	if slotBytes == 0 {
		return slots
	}
	if o.stride(slotBytes) < slotBytes { // it wrapped round
		return 0
	}
	budget := o.budget()
	fit := o.neighbours(budget, slotBytes)
	if fit >= int64(o.Together) { // so that a whole piece is no overflow
		whole := o.pieceBytes(o.Together, slotBytes)
		fit = budget/whole*int64(o.Together) + o.neighbours(budget%whole, slotBytes)
	}
	return int(min(fit, int64(slots))) // I4
}

// grow adds a piece of n buffers.
func (p *Pool) grow(n int, slotBytes int64, o Options) error {
	bytes := o.pieceBytes(n, slotBytes)
	host, err := p.dev.AllocHost(bytes, device.HostOptions{Locked: o.Locked && !p.pageable, Pageable: p.pageable})
	if errors.Is(err, device.ErrOutOfMemory) && o.Pageable && !p.pageable {
		p.pageable = true
		host, err = p.dev.AllocHost(bytes, device.HostOptions{Pageable: true})
	}
	if err != nil {
		return err
	}
	first := len(p.buffers)
	piece := &piece{host: host, bytes: bytes, stride: o.stride(slotBytes), first: first}
	p.bytes += bytes
	host.Describe(func(offset, _ int64) (name, hint string) {
		return fmt.Sprintf("pinned buffer %d", first+int(offset/max(piece.stride, 1))), ""
	})
	for i := range n {
		copied, err := p.dev.NewEvent(device.EventOptions{BlockingSync: true, Name: fmt.Sprintf("copied %d", first+i), Witness: p.witness})
		if err != nil {
			if i == 0 {
				p.bytes -= bytes
				err = errors.Join(err, host.Close())
			}
			return err
		}
		at := int64(i) * piece.stride
		b := &Buffer{id: first + i, piece: piece, offset: at, bytes: host.Bytes()[at : at+slotBytes : at+slotBytes], copied: copied}
		piece.size++
		piece.left++
		p.left++
		p.buffers = append(p.buffers, b)
		p.refill(b)
	}
	return nil
}

// retire gives b's event back, and its piece's memory with the last of the neighbours.
// The caller has taken b out of the pool for good, and holds p.closing.
func (p *Pool) retire(b *Buffer) error {
	err := b.copied.Close()
	var freed int64
	if b.piece.left--; b.piece.left == 0 {
		host := b.piece.host.Close()
		if host == nil {
			freed = b.piece.bytes
		}
		err = errors.Join(err, host)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left--
	p.bytes -= freed
	return err
}
