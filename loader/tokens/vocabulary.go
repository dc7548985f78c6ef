package tokens

import (
	"encoding/binary"
	"fmt"

	"github.com/leat-go/leat/dtype"
)

// below reports whether all tokens of two or four bytes are below the limit, four or two of them
// at a time: b has a multiple of eight bytes. Of other tokens it says no.
//
// A lane of twice a token's width holds the token and as much as the limit lacks of the token's
// range: the sum has one more bit exactly if the token is not below the limit.
func below(b []byte, width int, limit uint64) bool {
	if width != 2 && width != 4 || limit>>(8*width) != 0 {
		return false // the slow way is right for all
	}
	var mask, lacks, carry, high uint64
	if width == 2 {
		mask, lacks, carry = 0x0000ffff_0000ffff, (1<<16-limit)*0x00000001_00000001, 0x00010000_00010000
	} else {
		mask, lacks, carry = 0xffffffff, 1<<32-limit, 1<<32
	}
	for ; len(b) >= 8; b = b[8:] {
		four := binary.LittleEndian.Uint64(b)
		high |= (four&mask + lacks) | (four>>(8*width)&mask + lacks)
	}
	return high&carry == 0
}

// outside is the number of the first token that is not below the limit, and what it is; -1 if
// there is none.
func outside(b []byte, t dtype.Type, limit uint64) (int, string) {
	switch t {
	case dtype.Int8, dtype.Int16, dtype.Int32: // a negative one has the highest bit
		limit = min(limit, 1<<(8*t.Size()-1))
	}
	whole := len(b) / 8 * 8
	if below(b[:whole], t.Size(), limit) {
		i, got := slowly(b[whole:], t, limit)
		if i >= 0 {
			i += whole / t.Size()
		}
		return i, got
	}
	return slowly(b, t, limit)
}

func slowly(b []byte, t dtype.Type, limit uint64) (int, string) {
	switch t {
	case dtype.Uint8:
		return firstOutside(dtype.As[uint8](b), limit)
	case dtype.Int8:
		return firstOutside(dtype.As[int8](b), limit)
	case dtype.Uint16:
		return firstOutside(dtype.As[uint16](b), limit)
	case dtype.Int16:
		return firstOutside(dtype.As[int16](b), limit)
	case dtype.Uint32:
		return firstOutside(dtype.As[uint32](b), limit)
	case dtype.Int32:
		return firstOutside(dtype.As[int32](b), limit)
	case dtype.Uint64:
		return firstOutside(dtype.As[uint64](b), limit)
	}
	return firstOutside(dtype.As[int64](b), limit)
}

func firstOutside[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64](tokens []T, limit uint64) (int, string) {
	for i, token := range tokens {
		if uint64(token) >= limit { // a negative one is far above it
			return i, fmt.Sprint(token)
		}
	}
	return -1, ""
}
