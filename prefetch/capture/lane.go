package capture

import (
	"context"
	"errors"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// A lane is what a Step has for one compute stream. The step is captured on a stream of
// the lane's own: other goroutines record and wait on the compute stream meanwhile, for
// the Next and the Release of other batches, and a captured stream would take that in.
// Graphs are of one lane, since body may choose its working memory by the stream.
type lane struct {
	compute  *device.Stream
	captured *device.Stream
	params   *device.Buffer // nil if there are none
	block    *blocks
	checked  bool // somebody checks the order of all work

	graphs  map[ident][]*graph
	classes []*class
	once    []*device.Exec  // of steps that were launched once
	unfreed []*device.Graph // which the driver would not free

	worked bool          // something was submitted
	done   *device.Event // that it is done
}

// newLane makes a lane. What it could make before an error is in it, for close.
func newLane(compute *device.Stream, bytes int64, blocks int) (l *lane, err error) {
	dev := compute.Device()
	l = &lane{compute: compute, graphs: make(map[ident][]*graph), checked: driver.ObserverOf(dev.Driver()) != nil}
	if l.captured, err = dev.NewStream(device.StreamOptions{Name: compute.Name() + ", captured"}); err != nil {
		return l, err
	}
	if l.done, err = dev.NewEvent(device.EventOptions{BlockingSync: true, Name: "steps done"}); err != nil || bytes == 0 {
		return l, err
	}
	if l.params, err = dev.Alloc(bytes); err != nil {
		return l, err
	}
	l.params.Describe(func(int64, int64) (name, hint string) { return "the parameters of a captured step", "" })
	l.block, err = newBlocks(dev, bytes, blocks)
	return l, err
}

// view is the params in device memory.
func (l *lane) view() device.View {
	if l.params == nil {
		return device.View{}
	}
	return l.params.View()
}

// fill submits the copy of the step's params. The next one's overwrites them behind this
// step, which is on the same stream.
func (l *lane) fill(ctx context.Context, params []byte) error {
	if l.params == nil {
		return nil
	}
	l.worked = true
	return l.block.send(ctx, l.compute, l.params.View(), params)
}

// free frees a capture of which all is known and an exec made, or leaves that to close.
func (l *lane) free(captured *device.Graph) {
	if captured.Close() != nil {
		l.unfreed = append(l.unfreed, captured)
	}
}

// rest waits until the device has done all that was submitted, or never will.
func (l *lane) rest(ctx context.Context) error {
	if !l.worked {
		return nil
	}
	err := l.compute.Record(l.done)
	if err == nil {
		err = l.done.Synchronize(ctx)
	} else { // the stream is closed, perhaps, and its work may go on
		err = l.compute.Device().Synchronize(ctx)
	}
	if errors.Is(err, device.ErrFault) || errors.Is(err, device.ErrClosed) {
		return nil
	}
	return err
}

// close frees what the lane has; its work is done.
func (l *lane) close() error {
	var errs []error
	for _, same := range l.graphs {
		for _, g := range same {
			if g.exec != nil {
				errs = append(errs, g.exec.Close())
			}
		}
	}
	for _, x := range l.once {
		errs = append(errs, x.Close())
	}
	for _, g := range l.unfreed {
		errs = append(errs, g.Close())
	}
	l.graphs, l.once, l.unfreed = nil, nil, nil
	if l.block != nil {
		errs = append(errs, l.block.close())
	}
	if l.params != nil {
		errs = append(errs, l.params.Close())
	}
	if l.done != nil {
		errs = append(errs, l.done.Close())
	}
	if l.captured != nil {
		errs = append(errs, l.captured.Close())
	}
	return errors.Join(errs...)
}
