package slots

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// Options says what a Slot is made of.
type Options struct {
	ID     int
	Bytes  int64
	OnHost bool                // pinned memory, for a reader on the host
	Filled device.EventOptions // its name without the slot's number
	Read   device.EventOptions // of the reads' events, their names without numbers
	Reads  int                 // how many streams may read it in a lap
}

// New makes a Slot on dev. What it could make before an error is in it, for Close.
func New(dev *device.Device, o Options) (s *Slot, err error) {
	s = &Slot{ID: o.ID}
	if o.OnHost {
		if s.Host, err = dev.AllocHost(o.Bytes, device.HostOptions{}); err == nil {
			s.Memory, err = s.Host.View()
		}
	} else if s.buffer, err = dev.Alloc(o.Bytes); err == nil {
		s.Memory = s.buffer.View()
	}
	if err != nil {
		return s, err
	}
	o.Filled.Name = fmt.Sprintf("%s %d", o.Filled.Name, o.ID)
	if s.Filled, err = dev.NewEvent(o.Filled); err != nil {
		return s, err
	}
	o.Read.Name = fmt.Sprintf("%s %d", o.Read.Name, o.ID)
	return s, s.reads.init(dev, o.Read, o.Reads)
}

// Describe says what the memory is in reports of a checker of orders.
func (s *Slot) Describe(what func(offset, bytes int64) (name, hint string)) {
	if s.buffer != nil {
		s.buffer.Describe(what)
	} else {
		s.Host.Describe(what)
	}
}

// Close gives the memory and the events back.
func (s *Slot) Close() error {
	errs := []error{s.reads.close()}
	if s.Filled != nil {
		errs = append(errs, s.Filled.Close())
	}
	if s.buffer != nil {
		errs = append(errs, s.buffer.Close())
	}
	if s.Host != nil {
		errs = append(errs, s.Host.Close())
	}
	return errors.Join(errs...)
}
