package prefetch

import (
	"context"
	"fmt"
	"github.com/leat-go/leat/internal/slots"
)

// recover takes back what failed operations have left in doubt: when the streams have
// come to rest, nothing reads or writes it any more.
func (g *stages) recover(ctx context.Context) error {
	var failed []*slots.Slot
	if g.ring != nil {
		failed = g.ring.TakeFailed()
	}
	if len(failed)+g.pinned.pool.Doubtful() == 0 && g.pinned.pool.Failed() == nil {
		return nil
	}
	if err := g.comeToRest(ctx, failed); err != nil {
		for _, s := range failed {
			g.ring.Back(s, true)
		}
		return fmt.Errorf("prefetch: the device doesn't come to rest after a failed operation: %w", err)
	}
	g.pinned.pool.Recover()
	if g.transform != nil {
		for _, s := range g.transform.raws {
			s.Renew()
		}
	}
	for _, s := range failed {
		s.Renew()
		g.ring.Back(s, false)
	}
	return nil
}

// comeToRest waits for all that may use what is in doubt.
func (g *stages) comeToRest(ctx context.Context, failed []*slots.Slot) error {
	if g.copies != nil {
		if err := slots.Rest(ctx, g.copies); err != nil {
			return err
		}
	}
	if g.transform != nil {
		if err := slots.Rest(ctx, g.transform.stream); err != nil {
			return err
		}
	}
	for _, s := range failed {
		if err := s.Rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drain waits until all copies are done, and what a transform reads is read.
func (g *stages) drain(ctx context.Context) error {
	if err := g.pinned.pool.Drain(ctx); err != nil {
		return err
	}
	if g.copies != nil {
		if err := slots.Rest(ctx, g.copies); err != nil {
			return err
		}
	}
	if g.transform == nil {
		return nil
	}
	return g.transform.rest(ctx)
}

// restOf waits until nothing uses a slot. An error that isn't ctx's says why its events
// could not be waited for: then it has waited for the device.
func (g *stages) restOf(ctx context.Context, s *slots.Slot) error {
	err := s.Rest(ctx)
	if err != nil && ctx.Err() == nil {
		_ = g.host.Synchronize(ctx) // its error is ctx's, or that of a device whose work has ended
	}
	return err
}
