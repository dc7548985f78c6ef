package columns

import (
	"context"
	"encoding/binary"

	"github.com/leat-go/leat/loader/source"
)

// Memory is a File of bytes in memory, which it borrows for good.
func Memory(name string, b []byte) source.File {
	return source.NewFile(name, source.Info{Size: int64(len(b))}, func(_ context.Context, p []byte, off int64) (int, error) {
		return copy(p, b[off:]), nil
	}, nil)
}

// TurnBytes turns the bytes of each element round.
func TurnBytes(b []byte, width int) {
	big, little := binary.BigEndian, binary.LittleEndian
	switch width {
	case 2:
		for ; len(b) >= 2; b = b[2:] {
			little.PutUint16(b, big.Uint16(b))
		}
	case 4:
		for ; len(b) >= 4; b = b[4:] {
			little.PutUint32(b, big.Uint32(b))
		}
	case 8:
		for ; len(b) >= 8; b = b[8:] {
			little.PutUint64(b, big.Uint64(b))
		}
	}
}
