package capture

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/leat-go/leat/device"
)

// numbers is why a T can't be params, nil if it can: on every machine it must lie in memory
// as a kernel reads it.
func numbers(t reflect.Type) error {
	var mistakes []error
	var look func(t reflect.Type, path string, offset uintptr)
	look = func(t reflect.Type, path string, offset uintptr) {
		switch k := t.Kind(); {
		case k == reflect.Struct:
			for i := range t.NumField() {
				f := t.Field(i)
				look(f.Type, path+"."+f.Name, offset+f.Offset)
			}
		case k == reflect.Array:
			if t.Len() > 0 {
				look(t.Elem(), path+"[0]", offset)
			}
		case k == reflect.Int, k == reflect.Uint, k == reflect.Uintptr, k > reflect.Complex128:
			mistakes = append(mistakes, &device.OptionError{Option: path, Value: t, Want: "a number whose size is stated, or an array or a struct of those"})
		default:
			if align := min(t.Size(), 8); offset%align != 0 {
				mistakes = append(mistakes, &device.OptionError{Option: path, Value: words(fmt.Sprintf("at byte %d", offset)),
					Want: fmt.Sprintf("at a multiple of %d, as a kernel wants it: put larger numbers first", align)})
			}
		}
	}
	look(t, t.String(), 0)
	return errors.Join(mistakes...)
}

// blocks are pinned memory for params on their way: a step's are in use until the device
// has copied them, while the host goes on to later steps.
type blocks struct {
	witness *device.Witness // that a copy is done orders nothing else
	host    *device.HostBuffer
	locked  bool
	list    []block // used in turn
	turn    int
	err     error // of a copy of which nothing tells the end
}

type block struct {
	host   []byte
	copied *device.Event
	used   bool
}

// blockAlign keeps what the device reads and what the host writes out of each other's
// cache lines.
const blockAlign = 64

func newBlocks(dev *device.Device, bytes int64, n int) (*blocks, error) {
	bs := &blocks{witness: dev.NewWitness(), locked: true}
	stride := (bytes + blockAlign - 1) / blockAlign * blockAlign
	var err error
	if bs.host, err = dev.AllocHost(stride*int64(n), device.HostOptions{}); errors.Is(err, device.ErrOutOfMemory) {
		bs.locked = false
		bs.host, err = dev.AllocHost(stride*int64(n), device.HostOptions{Pageable: true})
	}
	if err != nil {
		return bs, err
	}
	for i := range int64(n) {
		e, err := dev.NewEvent(device.EventOptions{BlockingSync: true, Name: fmt.Sprintf("parameters copied %d", i), Witness: bs.witness})
		if err != nil {
			return bs, err
		}
		bs.list = append(bs.list, block{host: bs.host.Bytes()[i*stride:][:bytes], copied: e})
	}
	return bs, nil
}

func (bs *blocks) pageable() bool { return bs != nil && !bs.locked }

// send submits to s the copy of params to dst. It waits only if no block is free: then the
// device is as many steps behind.
func (bs *blocks) send(ctx context.Context, s *device.Stream, dst device.View, params []byte) error {
	if bs.err != nil {
		return bs.err
	}
	b := &bs.list[bs.turn]
	if err := bs.await(ctx, b); err != nil {
		return err
	}
	copy(b.host, params)
	if err := s.CopyH2D(dst, b.host); err != nil {
		return err
	}
	if bs.err = s.Record(b.copied); bs.err != nil {
		return bs.err
	}
	b.used = true
	bs.turn = (bs.turn + 1) % len(bs.list)
	return nil
}

// await waits until the device has copied what is in b.
func (bs *blocks) await(ctx context.Context, b *block) error {
	if !b.used {
		return nil
	}
	done, err := b.copied.Done()
	if err == nil && !done {
		err = b.copied.Synchronize(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return bs.witness.HostAtRest(b.host)
}

// close frees the memory; all copies are done.
func (bs *blocks) close() error {
	var errs []error
	for i := range bs.list {
		errs = append(errs, bs.list[i].copied.Close())
	}
	bs.witness.Tell()
	if bs.host != nil {
		errs = append(errs, bs.host.Close())
	}
	return errors.Join(errs...)
}
