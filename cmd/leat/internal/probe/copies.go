package probe

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

const smallest = 64 << 10

// copies are copies back to back on a stream, from and to memory that is as long on
// both sides.
type copies struct {
	run    func(size units.Bytes) units.Bytes // bytes of a run of copies of that size
	stream *device.Stream
	memory device.View
	watch  measure.Stopwatch
	clock  *clock
}

// newCopies makes what copies of up to size need; r.Err tells of a failure.
func (p *probe) newCopies(r *rig.Rig, size units.Bytes) *copies {
	c := &copies{run: p.run, stream: r.Stream("copy"), memory: r.Alloc(int64(p.run(size))), clock: &p.clock}
	c.watch = measure.NewStopwatch(r, c.stream)
	return c
}

// run is how many bytes a run of copies of size moves.
func (p *probe) run(size units.Bytes) units.Bytes {
	return size * max(1, (p.RunBytes+size-1)/size)
}

// h2d and d2h submit a run; host is at least as long.
func (c *copies) h2d(host []byte, size units.Bytes) func() error {
	return c.each(size, func(v device.View, at int64) error { return c.stream.CopyH2D(v, host[at:at+v.Size()]) })
}

func (c *copies) d2h(host []byte, size units.Bytes) func() error {
	return c.each(size, func(v device.View, at int64) error { return c.stream.CopyD2H(host[at:at+v.Size()], v) })
}

func (c *copies) each(size units.Bytes, submit func(v device.View, at int64) error) func() error {
	return func() error {
		for at := int64(0); at < int64(c.run(size)); at += int64(size) {
			if err := submit(c.memory.Slice(at, int64(size)), at); err != nil {
				return err
			}
		}
		return nil
	}
}

// steadyTime is what a measurement is to last at least, in up to mostPasses passes
// of a run: a single short one would count the time until the device gets going.
const (
	steadyTime = 5 * time.Millisecond
	mostPasses = 8
)

// time is how long a run takes, the median of several. The first one warms up, and is
// all if there is no time for more.
func (c *copies) time(ctx context.Context, runs int, submit func() error) (time.Duration, error) {
	once, err := c.watch.Time(ctx, submit)
	if err != nil {
		return 0, err
	}
	if c.clock.late(2 * once) {
		c.clock.hurried = true
		return once, nil
	}
	if once, err = c.watch.Time(ctx, submit); err != nil {
		return 0, err
	}
	passes := min(max(1, int(steadyTime/max(once, 1))), mostPasses)
	runs = c.clock.runs(runs, once*time.Duration(passes))
	took, err := c.watch.Median(ctx, runs, measure.Repeat(passes, submit))
	return took / time.Duration(passes), err
}

// measureCopies measures sizes a factor of four apart, from both kinds of memory.
func (p *probe) measureCopies(ctx context.Context, _ *rig.Rig) error {
	var sizes []units.Bytes
	for size := units.Bytes(smallest); size <= p.MaxBytes; size *= 4 {
		if p.run(size) > min(p.host/2, p.memory) {
			p.skip("copies of %v and more: this process may pin %v, and half of the device's free memory is %v", size, p.host, p.memory)
			break
		}
		sizes = append(sizes, size)
	}
	if len(sizes) == 0 {
		return nil
	}
	until := p.until
	for i, memory := range []string{"pinned", "pageable"} {
		p.until = until.Add(-time.Until(until) * time.Duration(1-i) / 2) // a half, and what is left of it
		err := p.part(ctx, "copies of "+memory+" memory", func(ctx context.Context, r *rig.Rig) error {
			return p.measureMemory(ctx, r, memory, sizes)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measureMemory sends random bytes there and back, and compares.
func (p *probe) measureMemory(ctx context.Context, r *rig.Rig, memory string, sizes []units.Bytes) error {
	largest := sizes[len(sizes)-1]
	c, o := p.newCopies(r, largest), device.HostOptions{Pageable: memory == "pageable"}
	in, out := r.AllocHost(int64(p.run(largest)), o), r.AllocHost(int64(p.run(largest)), o)
	if r.Err() != nil {
		return r.Err()
	}
	var next time.Duration // what the next size may take; where it moves more, into fresh memory
	for i, size := range sizes {
		if i > 0 && p.late(next) {
			p.skip("copies of %v and more of %s memory: %s", size, memory, p.why())
			break
		}
		start := time.Now()
		in, out := in[:p.run(size)], out[:p.run(size)]
		feed.Random(in)
		for _, way := range []struct {
			name   string
			submit func() error
		}{{"H2D", c.h2d(in, size)}, {"D2H", c.d2h(out, size)}} {
			took, err := c.time(ctx, p.Runs, way.submit)
			if err != nil {
				return err
			}
			p.Copies = append(p.Copies, Copy{Way: way.name, Memory: memory, Bytes: size, Rate: units.RateOf(p.run(size), took)})
		}
		if !bytes.Equal(in, out) {
			return fmt.Errorf("copies of %v came back changed", size)
		}
		next = time.Since(start)
		if more := p.run(4*size) / p.run(size); more > 1 {
			next *= time.Duration(2 * more)
		}
	}
	return nil
}

// measureBoth copies in and out at once, on a stream each.
func (p *probe) measureBoth(ctx context.Context, r *rig.Rig) error {
	size := p.largest(64 << 20)
	in, out := r.AllocHost(int64(size), device.HostOptions{}), r.AllocHost(int64(size), device.HostOptions{})
	to, from := r.Alloc(int64(size)), r.Alloc(int64(size))
	pair := measure.NewPair(r)
	watch := measure.NewStopwatch(r, pair.A)
	if r.Err() != nil {
		return r.Err()
	}
	feed.Random(in)
	if err := pair.A.CopyH2D(from, in); err != nil {
		return err
	}
	const n = 4
	both := func() error {
		return pair.Both(
			measure.Repeat(n, func() error { return pair.A.CopyH2D(to, in) }),
			measure.Repeat(n, func() error { return pair.B.CopyD2H(out, from) }))
	}
	once, err := watch.Time(ctx, both)
	if err != nil {
		return err
	}
	took, err := watch.Median(ctx, p.runs(p.Runs, once), both)
	if err != nil {
		return err
	}
	if !bytes.Equal(in, out) {
		return fmt.Errorf("%v came back changed", size)
	}
	p.Both = Both{Bytes: size, Rate: units.RateOf(2*n*size, took)}
	return nil
}
