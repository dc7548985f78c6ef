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

// measurePeer copies to the other device, if there is one.
func (p *probe) measurePeer(ctx context.Context, r *rig.Rig) (err error) {
	if p.Options.Peer == nil {
		return nil
	}
	way, err := p.dev.Connect(ctx, p.Options.Peer)
	if errors.Is(err, device.ErrUnsupported) || errors.Is(err, device.ErrCorrupt) {
		p.skip("copies to %s: %v", p.Options.Peer.Name(), err)
		return nil
	}
	if err != nil {
		return err
	}
	there := rig.New(p.Options.Peer)
	defer func() { err = errors.Join(err, there.Close()) }()
	return p.peerCopies(ctx, r, there, way)
}

func (p *probe) peerCopies(ctx context.Context, here, there *rig.Rig, way device.Way) error {
	size := p.largest(64 << 20)
	in, out := here.AllocHost(int64(size), device.HostOptions{}), here.AllocHost(int64(size), device.HostOptions{})
	from, to := here.Alloc(int64(size)), there.Alloc(int64(size))
	s := here.Stream("peer")
	watch := measure.NewStopwatch(here, s)
	if err := errors.Join(here.Err(), there.Err()); err != nil {
		return err
	}
	feed.Random(in)
	if err := s.CopyH2D(from, in); err != nil {
		return err
	}
	send := func() error { return s.CopyPeer(to, from) }
	once, err := watch.Time(ctx, send)
	if err != nil {
		return err
	}
	took, err := watch.Median(ctx, p.runs(p.Runs, once), send)
	if err != nil {
		return err
	}
	if err := errors.Join(s.Memset(from, 0), s.CopyPeer(from, to), s.CopyD2H(out, from), s.Synchronize(ctx)); err != nil {
		return err
	}
	if !bytes.Equal(in, out) {
		return fmt.Errorf("%v came back from %v changed", size, there.Device())
	}
	p.Report.Peer = Peer{Name: there.Device().Name(), Way: way.Kind.String(), Why: way.Why, Bytes: size, Rate: units.RateOf(size, took)}
	return nil
}
