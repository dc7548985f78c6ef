package prefetch

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// A Meter brings small values back from the device while training goes on: the
// loss of some steps ago, without waiting for it. It is for one goroutine.
type Meter struct {
	bytes   int64
	host    *device.HostBuffer
	arrived []*device.Event
	slots   []int64 // which Push each slot has, from 1
	pushes  int64
	latest  int64 // the newest Push known to have arrived
}

// meterSlots is how many values can be under way; more are left out.
const meterSlots = 16

// NewMeter makes a meter for values of that many bytes. The caller owns it until
// Close.
func NewMeter(dev *device.Device, bytes int64) (*Meter, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("prefetch: NewMeter: %d bytes, want 1 or more", bytes)
	}
	m := &Meter{bytes: bytes, slots: make([]int64, meterSlots)}
	var err error
	if m.host, err = dev.AllocHost(bytes*meterSlots, device.HostOptions{}); err != nil {
		return nil, err
	}
	for i := range meterSlots {
		e, err := dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("arrived %d", i)})
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.arrived = append(m.arrived, e)
	}
	return m, nil
}

// Push submits to s a copy of v, as it is when s gets there, and never waits. If
// the host is so far ahead that every slot is under way, this value is left out and
// Push reports false.
func (m *Meter) Push(s *device.Stream, v device.View) (taken bool, err error) {
	if v.Bytes() != m.bytes {
		return false, fmt.Errorf("prefetch: Meter.Push: %d bytes, want %d", v.Bytes(), m.bytes)
	}
	i := int(m.pushes % meterSlots)
	if m.slots[i] > m.latest { // else it has arrived, or a later one has
		done, err := m.arrived[i].Done()
		if err != nil || !done {
			return false, err
		}
		m.latest = max(m.latest, m.slots[i])
	}
	m.slots[i] = 0 // what is in it is no value from here on
	if err := s.CopyD2H(m.slot(i), v); err != nil {
		return false, err
	}
	if err := s.Record(m.arrived[i]); err != nil {
		return false, err
	}
	m.pushes++
	m.slots[i] = m.pushes
	return true, nil
}

func (m *Meter) slot(i int) []byte {
	at := int64(i) * m.bytes
	return m.host.Bytes()[at : at+m.bytes]
}

// Latest returns the newest value that has arrived and the number of its Push,
// counted from 1 over those taken; 0 before the first. It never waits. The value is
// borrowed until the next Push.
func (m *Meter) Latest() (value []byte, number int64, err error) {
	newest := -1
	for i, number := range m.slots {
		if number == 0 || newest >= 0 && number < m.slots[newest] {
			continue
		}
		if number > m.latest {
			done, err := m.arrived[i].Done()
			if err != nil {
				return nil, 0, err
			}
			if !done {
				continue
			}
		}
		newest = i
	}
	if newest < 0 {
		return nil, 0, nil
	}
	m.latest = max(m.latest, m.slots[newest])
	return m.slot(newest), m.slots[newest], nil
}

// Close frees the meter. The copies must be done.
func (m *Meter) Close() error {
	errs := make([]error, 0, len(m.arrived)+1)
	for _, e := range m.arrived {
		errs = append(errs, e.Close())
	}
	return errors.Join(append(errs, m.host.Free())...)
}
