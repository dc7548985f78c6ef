package tokens

import (
	"fmt"

	"github.com/leat-go/leat/dtype"
)

// outside is the number of the first token that is not below the limit, and what it is; -1 if
// there is none.
func outside(b []byte, t dtype.Type, limit uint64) (int, string) {
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
