package lesson

import (
	"context"
	"errors"
	"sync"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// batchBytes is a batch's size: the model's times do not depend on it.
const batchBytes = 256

// A card is a modelled device with streams, each with memory of its own.
type card struct {
	*rig.Rig
	options Options
	pace    pace
	lanes   []lane

	mu    sync.Mutex
	spans []cpu.Span // finished, in no certain order
}

// A lane is a stream and its batch's memory on both sides.
type lane struct {
	stream  *device.Stream
	memory  device.View
	in, out []byte
}

// newCard opens a card with so many streams. The caller owns it until close.
func newCard(o Options, p pace, streams int) (*card, error) {
	c := &card{options: o, pace: p}
	dev, err := cpu.Open(cpu.Options{Model: c.model(), Trace: c.trace})
	if err != nil {
		return nil, err
	}
	c.Rig = rig.New(dev)
	for range streams {
		c.lanes = append(c.lanes, lane{
			stream: c.Stream(streamName(len(c.lanes))),
			memory: c.Alloc(batchBytes),
			in:     c.AllocHost(batchBytes, device.HostOptions{}),
			out:    c.AllocHost(batchBytes, device.HostOptions{}),
		})
	}
	if c.Err() != nil {
		return nil, errors.Join(c.Err(), c.close())
	}
	return c, nil
}

func (c *card) model() *cpu.Model {
	return &cpu.Model{
		SharedCopyEngines: c.options.Engines == 1,
		H2D:               cpu.Link{Latency: c.pace.model(c.options.H2D)},
		D2H:               cpu.Link{Latency: c.pace.model(c.options.D2H)},
	}
}

func (c *card) trace(s cpu.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, s)
}

func (c *card) close() error {
	if err := c.Rig.Close(); err != nil {
		return err
	}
	return c.Device().Close()
}

// calls are what a batch needs on lane l, in order.
func (c *card) calls(l lane) [3]func() error {
	return [...]func() error{
		func() error { return l.stream.CopyH2D(l.memory, l.in) },
		func() error { return l.stream.Launch(cpu.Busy(c.pace.model(c.options.Compute))) },
		func() error { return l.stream.CopyD2H(l.out, l.memory) },
	}
}

// waiting runs the batches in one stream with a host that waits for each call, and
// returns how often it waited.
func (c *card) waiting(ctx context.Context, batches int) (waits int, err error) {
	l := c.lanes[0]
	for range batches {
		for _, call := range c.calls(l) {
			if err := call(); err != nil {
				return 0, err
			}
			if err := l.stream.Synchronize(ctx); err != nil {
				return 0, err
			}
			waits++
		}
	}
	return waits, nil
}

// ahead submits all batches, to the streams in turn, and waits once. The card
// begins when all is submitted, as if the host took no time for it, so that the
// times are exact also where the host is slow.
func (c *card) ahead(ctx context.Context, batches int) (waits int, err error) {
	gate, submitted := c.Stream("gate"), make(chan struct{})
	begin := c.Event("begin")
	if c.Err() != nil {
		return 0, c.Err()
	}
	err = errors.Join(gate.HostFunc(func() { <-submitted }), gate.Record(begin))
	for _, l := range c.lanes {
		err = errors.Join(err, l.stream.Wait(begin))
	}
	for i := range batches {
		for _, call := range c.calls(c.lanes[i%len(c.lanes)]) {
			err = errors.Join(err, call())
		}
	}
	close(submitted)
	return 1, errors.Join(err, c.Device().Synchronize(ctx))
}
