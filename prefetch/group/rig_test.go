package group_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/order"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

const ms = time.Millisecond

// canary is a dataset each byte of which tells its sample: a batch that holds anything of
// another batch shows it.
type canary struct {
	n, width int
	read     func(ctx context.Context, index int) error // called first, if not nil
}

func (c canary) Len() int { return c.n }

func (c canary) Fields() []loader.Field {
	return []loader.Field{
		{Name: "index", DType: dtype.Int64},
		{Name: "bytes", DType: dtype.Uint8, Shape: []int{c.width}},
	}
}

func (c canary) Read(ctx context.Context, index int, row *loader.Row) error {
	if c.read != nil {
		if err := c.read(ctx, index); err != nil {
			return err
		}
	}
	fill(row.Bytes("bytes"), index)
	return loader.Write(row, "index", int64(index))
}

func fill(b []byte, index int) {
	for i := range b {
		b[i] = byte((index*7 + i*13 + 1) % 251)
	}
}

// card is one device of a rig.
type card struct {
	dev    *device.Device
	stream *device.Stream
	arena  *device.HostBuffer // pinned memory for what is copied back
	used   int64
	before device.Usage
	broken atomic.Bool // its next kernel ends it
	spin   func(*device.Stream, time.Duration) error
}

func busy(s *device.Stream, d time.Duration) error { return s.Launch(cpu.Busy(d)) }

var errBroken = errors.New("the card has fallen off the bus")

// newCard opens a device as unkind as the rules allow, of which the order is checked.
func newCard(t *testing.T, checker *order.Checker, m *cpu.Model, seed uint64) *card {
	c := &card{spin: busy}
	adversary := &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Seed: seed, Fault: c.fault}
	drv, err := cpu.New(cpu.Options{Model: m, Adversary: adversary})
	require.NoError(t, err)
	c.open(t, checker.Wrap(drv))
	return c
}

// fault ends the device at its next kernel, once it is broken.
func (c *card) fault(call cpu.Call) error {
	if call.Op == "Launch" && c.broken.Load() {
		return errBroken
	}
	return nil
}

// open makes the device of a driver.
func (c *card) open(t *testing.T, d driver.Device) {
	t.Helper()
	var err error
	c.dev = device.New(d)
	c.stream, err = c.dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	c.arena, err = c.dev.AllocHost(1<<20, device.HostOptions{})
	require.NoError(t, err)
	c.before = c.dev.Usage()
}

// close requires that nothing is left on the device.
func (c *card) close(t *testing.T) {
	t.Helper()
	c.nothingLeft(t)
	require.NoError(t, c.arena.Close())
	require.NoError(t, c.stream.Close())
	require.NoError(t, c.dev.Close())
}

func (c *card) nothingLeft(t *testing.T) {
	t.Helper()
	after := c.dev.Usage()
	after.Allocations = c.before.Allocations
	require.Equal(t, c.before, after)
}

// newCards opens a device for each model.
func newCards(t *testing.T, models []*cpu.Model) []*card {
	checker := order.New(order.Options{ListOnly: true})
	t.Cleanup(func() { require.NoError(t, checker.Err()) })
	var cards []*card
	for i, m := range models {
		cards = append(cards, newCard(t, checker, m, uint64(i+1)))
	}
	return cards
}

func streamsOf(cards []*card) (all []*device.Stream) {
	for _, c := range cards {
		all = append(all, c.stream)
	}
	return all
}

// copies is a card whose every H2D copy takes in, whatever its size, and whose D2H copies
// take no time.
func copies(in time.Duration) *cpu.Model {
	return &cpu.Model{CopyTime: func(way cpu.Direction, _ int64) time.Duration {
		if way == cpu.H2D {
			return in
		}
		return 0
	}}
}

// rig is a group of canaries on devices of its own.
type rig struct {
	t     *testing.T
	data  canary
	ld    *loader.Loader
	cards []*card
	g     *group.Group
}

func newRig(t *testing.T, data canary, models []*cpu.Model, batchSize int, lo loader.Options, po prefetch.Options) *rig {
	t.Helper()
	return newRigOn(t, data, newCards(t, models), batchSize, lo, po)
}

func newRigOn(t *testing.T, data canary, cards []*card, batchSize int, lo loader.Options, po prefetch.Options) *rig {
	t.Helper()
	r := &rig{t: t, data: data, cards: cards}
	if lo.Last == loader.Keep && len(cards) > 1 {
		lo.Last = loader.Drop
	}
	var err error
	r.ld, err = loader.New(data, batchSize, lo)
	require.NoError(t, err)
	r.g, err = group.New(streamsOf(r.cards), r.ld, po)
	require.NoError(t, err)
	return r
}

// close frees everything and requires that nothing is left of the Group.
func (r *rig) close() {
	r.t.Helper()
	for _, c := range r.cards {
		require.NoError(r.t, c.dev.Synchronize(context.Background()))
	}
	require.NoError(r.t, r.g.Close())
	for _, c := range r.cards {
		c.close(r.t)
	}
}

// A reading is what a device's compute stream saw of its part of a step.
type reading struct {
	at          prefetch.Position
	rows, valid int
	index       []byte
	bytes       []byte
}

// read submits, behind a kernel that takes so long, copies of the batch as compute sees it
// when it gets there.
func (c *card) read(b prefetch.Batch, takes time.Duration) (got reading, err error) {
	got = reading{at: b.Position(), rows: b.Len(), valid: b.Valid()}
	if takes > 0 {
		if err := c.spin(b.Stream(), takes); err != nil {
			return got, err
		}
	}
	for name, to := range map[string]*[]byte{"index": &got.index, "bytes": &got.bytes} {
		f := b.Field(name)
		*to = c.arena.Bytes()[c.used:][:f.View.Size()]
		c.used += f.View.Size()
		if err := b.Stream().CopyD2H(*to, f.View); err != nil {
			return got, err
		}
	}
	return got, nil
}

// step reads all parts of a step.
func (r *rig) step(s group.Step, takes time.Duration) (all []reading) {
	for i, b := range s.Batches {
		require.Same(r.t, r.cards[i].dev, b.Stream().Device())
		got, err := r.cards[i].read(b, takes)
		require.NoError(r.t, err)
		all = append(all, got)
	}
	return all
}

// samples are the rows of a reading, all of which must be whole. The device must have come
// to rest.
func (c canary) samples(got reading) (samples []int, err error) {
	want := make([]byte, c.width)
	for row := range got.rows {
		index := int(binary.LittleEndian.Uint64(got.index[8*row:]))
		fill(want, index)
		if is := got.bytes[row*c.width:][:c.width]; string(is) != string(want) {
			return nil, fmt.Errorf("epoch %d batch %d row %d: sample %d has another's bytes", got.at.Epoch, got.at.Batch, row, index)
		}
		samples = append(samples, index)
	}
	return samples, nil
}

// rest waits for all devices.
func (r *rig) rest() {
	for _, c := range r.cards {
		require.NoError(r.t, c.dev.Synchronize(context.Background()))
	}
}

// verify requires that every step has the rows that the order has there, from the first on.
func (r *rig) verify(steps [][]reading, from int) {
	r.t.Helper()
	r.rest()
	per, _ := r.ld.Batches()
	for i, s := range steps {
		epoch, batch := (from+i)/per, (from+i)%per
		order := r.ld.Order(epoch)
		position := int64(batch * r.ld.BatchSize())
		for _, part := range s {
			require.Equal(r.t, epoch, part.at.Epoch)
			require.Equal(r.t, batch, part.at.Batch)
			samples, err := r.data.samples(part)
			require.NoError(r.t, err)
			for _, got := range samples {
				require.Equal(r.t, order.At(position%int64(r.data.n)), got, "epoch %d step %d position %d", epoch, batch, position)
				position++
			}
		}
	}
}

func repeat(m *cpu.Model, n int) (all []*cpu.Model) {
	for range n {
		one := *m
		all = append(all, &one)
	}
	return all
}
