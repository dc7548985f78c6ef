package main

import (
	"errors"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/examples/frames/filter"
)

// A slot is the memory of one frame under way, where no pipeline provides it.
type slot struct {
	frame  *device.Buffer     // uint8 [height, width, 3]
	result *device.Buffer     // three planes, uint8 [height, width] each
	in     *device.HostBuffer // pinned: the frame
	out    *device.HostBuffer // pinned: the result
	done   *device.Event      // the result is in out
}

func (b *bench) newSlot() (s *slot, err error) {
	s = &slot{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	bytes := int64(b.film.FrameBytes())
	if s.frame, err = b.dev.Alloc(bytes); err != nil {
		return s, err
	}
	if s.result, err = b.dev.Alloc(bytes); err != nil {
		return s, err
	}
	if s.in, err = b.dev.AllocHost(bytes, device.HostOptions{}); err != nil {
		return s, err
	}
	if s.out, err = b.dev.AllocHost(bytes, device.HostOptions{}); err != nil {
		return s, err
	}
	s.done, err = b.dev.NewEvent(device.EventOptions{BlockingSync: true, Name: "done"})
	return s, err
}

// views are the result's planes on the device, planes those on the host.
func (s *slot) views() (v filter.Planes) {
	n := s.result.Size() / int64(len(v))
	for i := range v {
		v[i] = s.result.View().Slice(int64(i)*n, n)
	}
	return v
}

func (s *slot) planes() (p planes) {
	n := len(s.out.Bytes()) / len(p)
	for i := range p {
		p[i] = s.out.Bytes()[i*n:][:n]
	}
	return p
}

// close frees the memory. The device must be done with it.
func (s *slot) close() error {
	var errs []error
	for _, b := range []*device.Buffer{s.frame, s.result} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	for _, h := range []*device.HostBuffer{s.in, s.out} {
		if h != nil {
			errs = append(errs, h.Close())
		}
	}
	if s.done != nil {
		errs = append(errs, s.done.Close())
	}
	return errors.Join(errs...)
}
