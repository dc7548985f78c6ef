package probe

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// matrices are two square factors and their product on the device.
type matrices struct {
	side    int
	a, b, c device.View
	// The host's sides of them, pinned.
	hostA, hostB, hostC []byte
}

// newMatrices makes random factors that r owns; r.Err tells of a failure.
func newMatrices(r *rig.Rig, side int) *matrices {
	size := int64(4 * side * side)
	var o device.HostOptions
	m := &matrices{
		side: side,
		a:    r.Alloc(size), b: r.Alloc(size), c: r.Alloc(size),
		hostA: r.AllocHost(size, o), hostB: r.AllocHost(size, o), hostC: r.AllocHost(size, o),
	}
	for _, mem := range [][]byte{m.hostA, m.hostB} {
		values := dtype.As[float32](mem)
		for i := range values {
			values[i] = rand.Float32() - 0.5
		}
	}
	return m
}

func (m *matrices) upload(s *device.Stream) error {
	if err := s.CopyH2D(m.a, m.hostA); err != nil {
		return err
	}
	return s.CopyH2D(m.b, m.hostB)
}

// multiply submits the product.
func (m *matrices) multiply(s *device.Stream) error { return submitProduct(s, m.c, m.a, m.b, m.side) }

// take returns the product and overwrites it on the device.
func (m *matrices) take(ctx context.Context, s *device.Stream) ([]byte, error) {
	if err := s.CopyD2H(m.hostC, m.c); err != nil {
		return nil, err
	}
	if err := s.Memset(m.c, 0xff); err != nil { // NaN
		return nil, err
	}
	return m.hostC, s.Synchronize(ctx)
}

// verifiedRows are how many rows are computed again: all would take the host too
// long.
const verifiedRows = 8

// verify compares rows of c with the host's own.
func (m *matrices) verify(c []byte) error {
	want := make([]float32, m.side*m.side)
	rows := append([]int{0, m.side - 1}, rand.Perm(m.side)[:verifiedRows-2]...)
	for _, row := range rows {
		multiply(want, dtype.As[float32](m.hostA), dtype.As[float32](m.hostB), m.side, row, row+1)
		for j := row * m.side; j < (row+1)*m.side; j++ {
			if got := dtype.As[float32](c)[j]; math.Float32bits(got) != math.Float32bits(want[j]) {
				return fmt.Errorf("element %d of row %d is %v, want %v", j-row*m.side, row, got, want[j])
			}
		}
	}
	return nil
}
