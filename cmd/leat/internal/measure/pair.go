package measure

import (
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
)

// A Pair is two streams that can run side by side. It is for one goroutine.
type Pair struct {
	A, B       *device.Stream
	fork, join *device.Event
}

// NewPair makes a pair that r owns; r.Err tells of a failure.
func NewPair(r *rig.Rig) Pair {
	return Pair{A: r.Stream("left"), B: r.Stream("right"), fork: r.Event("fork"), join: r.Event("join")}
}

// Both submits work to both streams so that neither begins before A gets there,
// and A goes on when both are done.
func (p Pair) Both(onA, onB func() error) error {
	for _, submit := range []func() error{
		func() error { return p.A.Record(p.fork) },
		func() error { return p.B.Wait(p.fork) },
		onA,
		onB,
		func() error { return p.B.Record(p.join) },
		func() error { return p.A.Wait(p.join) },
	} {
		if err := submit(); err != nil {
			return err
		}
	}
	return nil
}

// Repeat is f, n times.
func Repeat(n int, f func() error) func() error {
	return func() error {
		for range n {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}
