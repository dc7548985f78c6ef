package group

import (
	"fmt"

	"github.com/leat-go/leat/prefetch"
)

// DeviceError says on which device of a Group or a Pool something went wrong.
type DeviceError struct {
	// Index is the number of the device, in the order of New's streams, and Device its name,
	// with
	// its address on the bus where it has one.
	Index  int
	Device string
	// Err is what went wrong there.
	Err error
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("group: device %d (%s): %v", e.Index, e.Device, e.Err)
}

func (e *DeviceError) Unwrap() error { return e.Err }

// at is err of device i.
func (g *Group) at(i int, err error) error { return at(g.names, i, err) }

// at is err of one of the devices. That something is closed or busy holds for all of them.
func at(names []string, i int, err error) error {
	if err == nil || err == prefetch.ErrClosed || err == prefetch.ErrBusy {
		return err
	}
	return &DeviceError{Index: i, Device: names[i], Err: err}
}

// UnevenError says that the devices' parts of an epoch have not equally many steps: the
// iterator of a loader.Iterable has not given the same samples each time.
type UnevenError struct {
	// Epoch is which epoch. It ended for the device Ended, and not for the device Going.
	Epoch        int
	Ended, Going int
}

func (e *UnevenError) Error() string {
	return fmt.Sprintf("group: epoch %d is over for device %d and not for device %d: the iterator must give the same samples each time it is ranged over in an epoch",
		e.Epoch, e.Ended, e.Going)
}
