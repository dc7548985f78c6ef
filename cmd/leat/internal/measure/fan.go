package measure

import (
	"fmt"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
)

// A Fan is streams that can run side by side. It is for one goroutine.
type Fan struct {
	Streams  []*device.Stream
	junction *device.Junction
}

// NewFan makes a fan of n streams that r owns; r.Err tells of a failure.
func NewFan(r *rig.Rig, n int) (f Fan, err error) {
	for i := range n {
		f.Streams = append(f.Streams, r.Stream(fmt.Sprintf("fan %d", i)))
	}
	if r.Err() != nil {
		return f, r.Err()
	}
	if f.junction, err = r.Device().NewJunction(); err == nil {
		r.Owns(f.junction.Close)
	}
	return f, err
}

// Over submits work to the first n streams in turn, so that none begins before the first
// stream gets there, and that goes on when all is done.
func (f Fan) Over(n int, work []func(s *device.Stream) error) error {
	others := f.Streams[1:n]
	if err := f.junction.Fork(f.Streams[0], others...); err != nil {
		return err
	}
	for i, submit := range work {
		if err := submit(f.Streams[i%n]); err != nil {
			return err
		}
	}
	return f.junction.Join(f.Streams[0], others...)
}
