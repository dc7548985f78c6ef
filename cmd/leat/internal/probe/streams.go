package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

// streamCounts are those that the same work is spread over. There is one piece of work
// for each of the most streams.
var streamCounts = []int{1, 2, 4, 8}

const mostStreams = 8

// A spread is the same work on more and more streams.
type spread struct {
	name string
	work []func(*device.Stream) error
	// check looks at what the work has done, which again does once more, and wipes it out.
	check func(again func() error) error
}

// measureStreams spreads kernels, and then copies, over more and more streams.
func (p *probe) measureStreams(ctx context.Context, _ *rig.Rig) error {
	for _, prepare := range []func(context.Context, *rig.Rig, *device.Stream) (spread, error){p.spreadProducts, p.spreadCopies} {
		err := p.part(ctx, "more streams", func(ctx context.Context, r *rig.Rig) error {
			fan, err := measure.NewFan(r, mostStreams)
			if err != nil {
				return err
			}
			s, err := prepare(ctx, r, fan.Streams[0])
			if err != nil {
				return err
			}
			return p.spread(ctx, r, fan, s)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *probe) spread(ctx context.Context, r *rig.Rig, fan measure.Fan, of spread) error {
	watch := measure.NewStopwatch(r, fan.Streams[0])
	if r.Err() != nil {
		return r.Err()
	}
	s := Streams{Work: of.name}
	for i, n := range streamCounts {
		if i > 1 && p.late(2*s.Times[i-1].Time) {
			p.skip("%s on %d streams and more: %s", of.name, n, p.why())
			break
		}
		submit := func() error { return fan.Over(n, of.work) }
		once, err := watch.Time(ctx, submit)
		if err != nil {
			return err
		}
		took, err := watch.Median(ctx, p.runs(p.Runs, once), submit)
		if err != nil {
			return err
		}
		if err := of.check(submit); err != nil {
			return fmt.Errorf("on %d streams: %w", n, err)
		}
		s.Times = append(s.Times, StreamsTime{Streams: n, Time: took})
	}
	p.Streams = append(p.Streams, s)
	return nil
}

// spreadProducts is products of matrices of their own.
func (p *probe) spreadProducts(ctx context.Context, r *rig.Rig, first *device.Stream) (s spread, err error) {
	s.name = fmt.Sprintf("%d products of %d×%d matrices", mostStreams, p.Sides[0], p.Sides[0])
	var all []*matrices
	for range mostStreams {
		m := newMatrices(r, p.Sides[0])
		if r.Err() != nil {
			return s, r.Err()
		}
		if err := m.upload(first); err != nil {
			return s, err
		}
		all, s.work = append(all, m), append(s.work, m.multiply)
	}
	s.check = func(func() error) error {
		_, err := products(ctx, first, all...)
		return err
	}
	return s, nil
}

// spreadCopies is copies in, of memory of their own.
func (p *probe) spreadCopies(ctx context.Context, r *rig.Rig, first *device.Stream) (s spread, err error) {
	size := int64(p.largest(16<<20)/mostStreams) &^ 7
	s.name = fmt.Sprintf("%d copies of %v", mostStreams, units.Bytes(size))
	in, out := r.AllocHost(mostStreams*size, device.HostOptions{}), r.AllocHost(mostStreams*size, device.HostOptions{})
	memory := r.Alloc(mostStreams * size)
	if r.Err() != nil {
		return s, r.Err()
	}
	feed.Random(in)
	for i := range int64(mostStreams) {
		s.work = append(s.work, func(s *device.Stream) error {
			return s.CopyH2D(memory.Slice(i*size, size), in[i*size:(i+1)*size])
		})
	}
	s.check = func(again func() error) error {
		if err := errors.Join(first.Memset(memory, 0), again(), first.CopyD2H(out, memory), first.Synchronize(ctx)); err != nil {
			return err
		}
		if !bytes.Equal(in, out) {
			return errors.New("copies came back changed")
		}
		return nil
	}
	return s, nil
}
