package fuzz

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gorgonia.org/tensor"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/meter"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A lease is a batch in the consumer's hands.
type lease struct {
	batch prefetch.Batch
	want  *expected
}

// A reading is what some stream has seen of a batch.
type reading struct {
	want  *expected
	where string
	bytes map[string][]byte
}

func (g *reading) contents(name string) []byte { return g.bytes[name] }

// arrived checks that a batch is the next one, and moves the reference.
func (q *pipe) arrived(b prefetch.Batch) (*expected, error) {
	o := q.ref.next()
	e := o.batch
	if at := b.Position(); e == nil {
		return nil, fmt.Errorf("%+v is delivered, want %v", at, o)
	} else if at != (prefetch.Position{Epoch: e.epoch, Batch: e.batch, First: e.position}) || b.Len() != len(e.indices) || b.Valid() != e.valid {
		return nil, fmt.Errorf("%+v of %d rows, %d valid, is delivered, want %v", at, b.Len(), b.Valid(), o)
	}
	if err := q.ref.substitutes(e, b.Substituted()); err != nil {
		return nil, err
	}
	q.ref.advance(o)
	q.counted.Batches++
	q.counted.Samples += int64(e.valid)
	if is, want := q.pf.State(), q.ld.StateAt(q.ref.at); !is.Equal(want) {
		return nil, fmt.Errorf("in the body the state is %+v, want %+v", is, want)
	}
	return e, nil
}

// look reads a batch where it may be used as it is.
func (q *pipe) look(l lease, where string) error {
	if q.shape.Host {
		g := &reading{want: l.want, where: where, bytes: map[string][]byte{}}
		for _, f := range l.batch.Fields() {
			g.bytes[f.Name] = f.Bytes
		}
		return q.program.Data.compare(g.contents, g.want, q.words)
	}
	return q.lookOn(l, l.batch.Stream(), where)
}

// lookOn submits copies of what a stream sees.
func (q *pipe) lookOn(l lease, s *device.Stream, where string) error {
	return q.copy(l.want, where, func(name string) prefetch.Field { return l.batch.Field(name) },
		func(to []byte, f prefetch.Field) error { return s.CopyD2H(to, f.View) })
}

func (q *pipe) copy(want *expected, where string, field func(string) prefetch.Field, to func([]byte, prefetch.Field) error) error {
	g := &reading{want: want, where: where, bytes: map[string][]byte{}}
	for _, name := range q.program.Data.names() {
		from := field(name)
		g.bytes[name] = make([]byte, from.View.Size())
		if err := to(g.bytes[name], from); err != nil {
			return q.mine(err)
		}
	}
	q.readings = append(q.readings, g)
	return nil
}

// mine is an error of the fuzzer's own calls, which the fault may hit too.
func (q *pipe) mine(err error) error {
	if errors.Is(err, errFault) {
		return nil
	}
	return err
}

// use does one thing with a batch. It reports whether the batch has been released.
func (q *pipe) use(l lease, how string) (released bool, err error) {
	b := l.batch
	if q.shape.Host {
		switch how {
		case "busy":
			time.Sleep(50 * time.Microsecond)
		case "release early":
			err = q.look(l, how)
			b.Release()
			return true, err
		case "clone":
			return false, q.clone(l)
		case "meter":
			return false, q.tensors(l)
		case "nothing":
			return false, nil
		}
		return false, q.look(l, how)
	}
	switch how {
	case "nothing":
		return false, nil
	case "busy":
		err = errors.Join(q.mine(busy(b.Stream(), q.program.busy())), q.look(l, how))
	case "use elsewhere":
		err = q.elsewhere(l, q.bench.extra, how)
	case "use on a stream of its own":
		return q.ownStream(l, how)
	case "use on a peer":
		err = q.onPeer(l, how)
	case "clone":
		err = q.clone(l)
	case "meter":
		err = q.push(l)
	case "quiesce":
		if err = q.look(l, how); err == nil {
			err = q.quiesce()
		}
	case "release early":
		err = q.look(l, how)
		b.Release()
		return true, err
	case "be refused":
		var once *loader.OnePassError // it stands elsewhere
		if e := q.pf.Seek(0, 0); !errors.Is(e, prefetch.ErrBusy) && !errors.As(e, &once) && !q.closing.Load() {
			err = fmt.Errorf("Seek in a range: %w", e)
		}
		if e := q.pf.Start(context.Background()); !errors.Is(e, prefetch.ErrBusy) && !q.closing.Load() {
			err = errors.Join(err, fmt.Errorf("Start in a range: %w", e))
		}
		if _, e := q.pf.Open(context.Background()); !errors.Is(e, prefetch.ErrBusy) && !q.closing.Load() {
			err = errors.Join(err, fmt.Errorf("Open in a range: %w", e))
		}
	default:
		err = q.look(l, how)
	}
	return false, err
}

// elsewhere uses a batch on its own stream and on another.
func (q *pipe) elsewhere(l lease, s *device.Stream, how string) error {
	if err := q.look(l, how); err != nil {
		return err
	}
	if err := l.batch.UsedOn(s); err != nil {
		return q.mine(err)
	}
	return errors.Join(q.mine(busy(s, q.program.busy())), q.lookOn(l, s, how))
}

// ownStream uses a batch on a stream that is closed right behind its Release.
func (q *pipe) ownStream(l lease, how string) (bool, error) {
	s, err := q.bench.dev.NewStream(device.StreamOptions{Name: "temporary"})
	if err != nil {
		return false, q.mine(err)
	}
	err = q.elsewhere(l, s, how)
	l.batch.Release()
	return true, errors.Join(err, s.Close())
}

// onPeer uses a batch on another device, if UsedOn takes its stream.
func (q *pipe) onPeer(l lease, how string) error {
	s := q.bench.foreign
	if l.batch.UsedOn(s) != nil {
		return q.look(l, how)
	}
	return q.copy(l.want, how, func(name string) prefetch.Field { return l.batch.Field(name) },
		func(to []byte, f prefetch.Field) error {
			if len(to) == 0 {
				return nil
			}
			there := q.landing.View().Slice(0, f.View.Size())
			return errors.Join(s.CopyPeer(there, f.View), s.CopyD2H(to, there))
		})
}

func (q *pipe) clone(l lease) error {
	c, err := l.batch.Clone()
	if err != nil {
		return q.mine(err)
	}
	q.frees = append(q.frees, c.Close)
	if q.shape.Host {
		g := &reading{want: l.want, where: "clone", bytes: map[string][]byte{}}
		for _, name := range q.program.Data.names() {
			g.bytes[name] = c.Field(name).Bytes
		}
		q.readings = append(q.readings, g) // it stays as it is
		return nil
	}
	return q.copy(l.want, "clone", c.Field, func(to []byte, f prefetch.Field) error { return l.batch.Stream().CopyD2H(to, f.View) })
}

// quiesce brings the pipeline to rest: from then on it calls no device.
func (q *pipe) quiesce() error {
	if err := q.pf.Quiesce(context.Background()); err != nil {
		return q.allowed(err)
	}
	if q.releases.Load()+q.asides.Load() > 0 || q.closing.Load() || len(q.program.TwinSteps) > 0 {
		return nil
	}
	calls := q.bench.tap.Calls()
	time.Sleep(10 * time.Millisecond)
	for op, n := range q.bench.tap.Calls() {
		if n != calls[op] && !q.closing.Load() {
			return fmt.Errorf("after Quiesce: %d calls of %v", n-calls[op], op)
		}
	}
	return nil
}

// tensors looks at a host batch as tensors, from two goroutines.
func (q *pipe) tensors(l lease) error {
	var both sync.WaitGroup
	failed := make([]error, 2)
	for i := range failed {
		both.Go(func() {
			x, err := q.dense.Of(l.batch.Field("id"))
			if err == nil && !x.Shape().Eq(tensor.Shape{l.batch.Len()}) {
				err = fmt.Errorf("the tensor's shape is %v, want %d rows", x.Shape(), l.batch.Len())
			}
			failed[i] = err
		})
	}
	both.Wait()
	if l.batch.Len() == 0 {
		return nil // whatever a tensor of no rows is
	}
	return errors.Join(append(failed, q.look(l, "tensors"))...)
}

// metered is a Meter and what was pushed to it.
type metered struct {
	meter  *meter.Meter[int64]
	pushed []int64
	newest int64
}

func newMetered(dev *device.Device) (*metered, error) {
	m, err := meter.New[int64](dev)
	return &metered{meter: m}, err
}

// push pushes a batch's first id.
func (q *pipe) push(l lease) error {
	if err := q.look(l, "meter"); err != nil || l.batch.Len() == 0 {
		return err
	}
	q.meter.pushed = append(q.meter.pushed, int64(l.want.indices[0]))
	if err := q.meter.meter.Push(l.batch.Stream(), l.batch.Field("id").View.Slice(0, 8)); err != nil {
		return q.mine(err)
	}
	return q.mine(q.meter.check())
}

// check looks at the newest value.
func (m *metered) check() error {
	value, n, err := m.meter.Latest()
	switch {
	case err != nil:
		return fmt.Errorf("Meter: %w", err)
	case n < m.newest || n > int64(len(m.pushed)):
		return fmt.Errorf("the Meter's newest is push %d, before it was %d of %d", n, m.newest, len(m.pushed))
	case n > 0 && value != m.pushed[n-1]:
		return fmt.Errorf("the Meter has %d for push %d, want %d", value, n, m.pushed[n-1])
	}
	m.newest = n
	return nil
}
