package dtype_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
)

// seen are the Go types as which the elements of each type are seen.
func seen[T dtype.Element](t *testing.T, types ...dtype.Type) {
	for is := dtype.Invalid; is.Valid() || is == dtype.Invalid; is++ {
		want := false
		for _, one := range types {
			want = want || one == is
		}
		require.Equal(t, want, dtype.Holds[T](is), "%v seen as %T", is, *new(T))
	}
}

func TestEachTypeIsSeenAsOneGoType(t *testing.T) {
	seen[bool](t, dtype.Bool)
	seen[uint8](t, dtype.Uint8)
	seen[int8](t, dtype.Int8)
	seen[uint16](t, dtype.Uint16, dtype.Float16, dtype.BFloat16)
	seen[int16](t, dtype.Int16)
	seen[uint32](t, dtype.Uint32)
	seen[int32](t, dtype.Int32)
	seen[uint64](t, dtype.Uint64)
	seen[int64](t, dtype.Int64)
	seen[float32](t, dtype.Float32)
	seen[float64](t, dtype.Float64)
}

func TestElementsAndBytesShareMemory(t *testing.T) {
	b := make([]byte, 64)
	dtype.As[uint32](b)[3] = 0x04030201
	require.Equal(t, []byte{1, 2, 3, 4}, b[12:16])
	require.Len(t, dtype.As[float64](b), 8)
	require.Same(t, &b[0], &dtype.Bytes(dtype.As[int16](b))[0])
	require.Len(t, dtype.Bytes(dtype.As[int16](b)), 64)
	require.Empty(t, dtype.As[int64](nil))
	require.Empty(t, dtype.Bytes([]int64(nil)))
}

func TestBytesThatAreNoElementsPanic(t *testing.T) {
	b := make([]byte, 64)
	require.Panics(t, func() { dtype.As[uint32](b[:7]) }, "not a whole number")
	require.Panics(t, func() { dtype.As[uint32](b[2:10]) }, "not aligned")
}

func ExampleAs() {
	mem := make([]byte, 16) // the memory of a buffer, say
	x := dtype.As[float32](mem)
	x[2] = 1
	fmt.Println(len(x), mem[8:12])
	// Output:
	// 4 [0 0 128 63]
}
