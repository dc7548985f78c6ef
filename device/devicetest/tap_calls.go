package devicetest

import (
	"context"
	"time"

	"github.com/leat-go/leat/device/driver"
)

// Streams.

func (t *Tap) NewStream(c driver.StreamConfig) (driver.Stream, error) {
	if skip, err := t.pass(NewStream, subject{}); skip {
		return 0, err
	}
	s, err := t.Device.NewStream(c)
	if err == nil {
		t.nameStream(s, c.Name)
	}
	return s, err
}

func (t *Tap) AdoptStream(native uintptr) (driver.Stream, error) {
	if skip, err := t.pass(AdoptStream, subject{}); skip {
		return 0, err
	}
	s, err := t.Device.AdoptStream(native)
	if err == nil {
		t.nameStream(s, "native")
	}
	return s, err
}

func (t *Tap) nameStream(s driver.Stream, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[s] = name
}

func (t *Tap) FreeStream(s driver.Stream) error {
	if skip, err := t.pass(FreeStream, subject{stream: s}); skip {
		return err
	}
	err := t.Device.FreeStream(s)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.streams, s)
	}
	return err
}

func (t *Tap) StreamDone(s driver.Stream) (bool, error) {
	if skip, err := t.pass(StreamDone, subject{stream: s}); skip {
		return err == nil, err
	}
	return t.Device.StreamDone(s)
}

// StreamIdle is a StreamDone; see driver.StreamIdle.
func (t *Tap) StreamIdle(s driver.Stream) (bool, error) {
	if skip, err := t.pass(StreamDone, subject{stream: s}); skip {
		return true, err
	}
	return driver.StreamIdle(t.Device, s)
}

func (t *Tap) SynchronizeStream(ctx context.Context, s driver.Stream) error {
	if skip, err := t.pass(SynchronizeStream, subject{stream: s}); skip {
		return err
	}
	return t.Device.SynchronizeStream(ctx, s)
}

// Events.

func (t *Tap) NewEvent(c driver.EventConfig) (driver.Event, error) {
	if skip, err := t.pass(NewEvent, subject{}); skip {
		return 0, err
	}
	e, err := t.Device.NewEvent(c)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.events[e] = c.Name
	}
	return e, err
}

func (t *Tap) FreeEvent(e driver.Event) error {
	if skip, err := t.pass(FreeEvent, subject{event: e}); skip {
		return err
	}
	err := t.Device.FreeEvent(e)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.events, e)
	}
	return err
}

func (t *Tap) Record(e driver.Event, s driver.Stream) error {
	if skip, err := t.pass(Record, subject{stream: s, event: e}); skip {
		return err
	}
	return t.Device.Record(e, s)
}

func (t *Tap) Wait(s driver.Stream, e driver.Event) error {
	if skip, err := t.pass(Wait, subject{stream: s, event: e}); skip {
		return err
	}
	return t.Device.Wait(s, e)
}

func (t *Tap) EventDone(e driver.Event) (bool, error) {
	if skip, err := t.pass(EventDone, subject{event: e}); skip {
		return err == nil, err
	}
	return t.Device.EventDone(e)
}

func (t *Tap) SynchronizeEvent(ctx context.Context, e driver.Event) error {
	if skip, err := t.pass(SynchronizeEvent, subject{event: e}); skip {
		return err
	}
	return t.Device.SynchronizeEvent(ctx, e)
}

func (t *Tap) Elapsed(start, end driver.Event) (time.Duration, error) {
	if skip, err := t.pass(Elapsed, subject{event: end}); skip {
		return 0, err
	}
	return t.Device.Elapsed(start, end)
}

// Memory.

func (t *Tap) Alloc(bytes int64) (driver.Address, error) {
	if skip, err := t.pass(Alloc, subject{}); skip {
		return 0, err
	}
	return t.Device.Alloc(bytes)
}

func (t *Tap) Free(p driver.Address) error {
	if skip, err := t.pass(Free, subject{}); skip {
		return err
	}
	return t.Device.Free(p)
}

func (t *Tap) AllocHost(bytes int64, c driver.HostConfig) ([]byte, error) {
	if skip, err := t.pass(AllocHost, subject{}); skip {
		return nil, err
	}
	return t.Device.AllocHost(bytes, c)
}

func (t *Tap) FreeHost(mem []byte) error {
	if skip, err := t.pass(FreeHost, subject{}); skip {
		return err
	}
	return t.Device.FreeHost(mem)
}

func (t *Tap) RegisterHost(mem []byte, c driver.HostConfig) error {
	if skip, err := t.pass(RegisterHost, subject{}); skip {
		return err
	}
	return t.Device.RegisterHost(mem, c)
}

func (t *Tap) UnregisterHost(mem []byte) error {
	if skip, err := t.pass(UnregisterHost, subject{}); skip {
		return err
	}
	return t.Device.UnregisterHost(mem)
}

func (t *Tap) HostAddress(mem []byte) (driver.Address, error) {
	if skip, err := t.pass(HostAddress, subject{}); skip {
		return 0, err
	}
	return t.Device.HostAddress(mem)
}

// Work.

func (t *Tap) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	if skip, err := t.pass(CopyH2D, subject{stream: s}); skip {
		return err
	}
	return t.Device.CopyH2D(s, dst, src)
}

func (t *Tap) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	if skip, err := t.pass(CopyD2H, subject{stream: s}); skip {
		return err
	}
	return t.Device.CopyD2H(s, dst, src)
}

func (t *Tap) CopyD2D(s driver.Stream, dst, src driver.Address, bytes int64) error {
	if skip, err := t.pass(CopyD2D, subject{stream: s}); skip {
		return err
	}
	return t.Device.CopyD2D(s, dst, src, bytes)
}

func (t *Tap) Memset(s driver.Stream, dst driver.Address, value byte, bytes int64) error {
	if skip, err := t.pass(Memset, subject{stream: s}); skip {
		return err
	}
	return t.Device.Memset(s, dst, value, bytes)
}

func (t *Tap) HostFunc(s driver.Stream, f func()) error {
	if skip, err := t.pass(HostFunc, subject{stream: s}); skip {
		return err
	}
	return t.Device.HostFunc(s, f)
}

func (t *Tap) Launch(s driver.Stream, l *driver.Launch) error {
	name := ""
	if l.Kernel != nil {
		name = l.Kernel.Name
	}
	if skip, err := t.pass(Launch, subject{stream: s, kernel: name}); skip {
		return err
	}
	return t.Device.Launch(s, l)
}
