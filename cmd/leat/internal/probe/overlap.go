package probe

import (
	"context"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/kernels"
)

// overlapped is how many copies run beside the kernel.
const overlapped = 4

// measureOverlap runs copies beside a kernel that takes as long.
func (p *probe) measureOverlap(ctx context.Context, r *rig.Rig) error {
	size := p.largest(64 << 20)
	host, memory := r.AllocHost(int64(size), device.HostOptions{}), r.Alloc(int64(size))
	pair := measure.NewPair(r)
	watch := measure.NewStopwatch(r, pair.A)
	if r.Err() != nil {
		return r.Err()
	}
	o := Overlap{Bytes: size}
	feed.Random(host)
	copying := measure.Repeat(overlapped, func() error { return pair.A.CopyH2D(memory, host) })
	once, err := watch.Time(ctx, copying)
	if err != nil {
		return err
	}
	runs := p.runs(p.Runs, 3*once) // of three figures
	if o.Copy, err = watch.Median(ctx, runs, copying); err != nil {
		return err
	}
	spin := func(s *device.Stream) func() error {
		return func() error { return kernels.Spin(s, o.Copy) }
	}
	if o.Kernel, err = watch.Median(ctx, runs, spin(pair.A)); err != nil {
		return err
	}
	o.Together, err = watch.Median(ctx, runs, func() error { return pair.Both(copying, spin(pair.B)) })
	if err != nil {
		return err
	}
	shorter := min(o.Copy, o.Kernel)
	if shorter > 0 {
		o.Hidden = min(max(float64(o.Copy+o.Kernel-o.Together)/float64(shorter), 0), 1)
	}
	p.Overlap = o
	return nil
}
