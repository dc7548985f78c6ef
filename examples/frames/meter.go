package main

import (
	"errors"
	"sync"
	"time"

	"github.com/leat-go/leat/device/driver"
)

// An engine is a part of the device that works beside the others.
type engine int

const (
	upload engine = iota
	compute
	download
	engines
)

// A meter is a driver that measures how long each engine works: it records a timed
// event before every copy and kernel and one behind. So the same ruler is laid to
// all ways, whatever submits the work.
type meter struct {
	driver.Device

	mu      sync.Mutex
	idle    []span
	running [engines][]span
	busy    [engines]time.Duration
}

// A span is the pair of timed events about a copy or a kernel.
type span struct{ start, end driver.Event }

func (m *meter) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	return m.timed(s, upload, func() error { return m.Device.CopyH2D(s, dst, src) })
}

func (m *meter) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	return m.timed(s, download, func() error { return m.Device.CopyD2H(s, dst, src) })
}

func (m *meter) Launch(s driver.Stream, l *driver.Launch) error {
	return m.timed(s, compute, func() error { return m.Device.Launch(s, l) })
}

func (m *meter) timed(s driver.Stream, e engine, submit func() error) error {
	p, err := m.take()
	if err != nil {
		return err
	}
	if err = m.Record(p.start, s); err == nil {
		if err = submit(); err == nil {
			err = m.Record(p.end, s)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.idle = append(m.idle, p)
		return err
	}
	m.running[e] = append(m.running[e], p)
	return nil
}

// take gives a span that is not in use; there are as many as operations were ever
// under way at once.
func (m *meter) take() (p span, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.idle) == 0 {
		if err := m.collect(); err != nil {
			return p, err
		}
	}
	if n := len(m.idle); n > 0 {
		p = m.idle[n-1]
		m.idle = m.idle[:n-1]
		return p, nil
	}
	if p.start, err = m.NewEvent(driver.EventConfig{Timing: true, Name: "start"}); err != nil {
		return p, err
	}
	if p.end, err = m.NewEvent(driver.EventConfig{Timing: true, Name: "end"}); err != nil {
		return p, errors.Join(err, m.FreeEvent(p.start))
	}
	return p, nil
}

// collect adds up the spans that are done. The caller holds m.mu.
func (m *meter) collect() error {
	for e := range m.running {
		for len(m.running[e]) > 0 {
			p := m.running[e][0]
			if done, err := m.EventDone(p.end); err != nil {
				return err
			} else if !done {
				break
			}
			took, err := m.Elapsed(p.start, p.end)
			if err != nil {
				return err
			}
			m.busy[e] += took
			m.running[e] = m.running[e][1:]
			m.idle = append(m.idle, p)
		}
	}
	return nil
}

// measured is how long each engine has worked since the last call. The device must
// be at rest.
func (m *meter) measured() (busy [engines]time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err = m.collect()
	busy, m.busy = m.busy, busy
	return busy, err
}

// Close frees the events and closes the device.
func (m *meter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	spans := m.idle
	for _, running := range m.running {
		spans = append(spans, running...)
	}
	var errs []error
	for _, p := range spans {
		errs = append(errs, m.FreeEvent(p.start), m.FreeEvent(p.end))
	}
	return errors.Join(append(errs, m.Device.Close())...)
}
