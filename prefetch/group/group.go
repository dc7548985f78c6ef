package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/prefetch"
)

// A Group brings every batch of a loader to several devices, a part of it to each. New
// makes one; the caller owns it until Close.
//
// One goroutine at a time consumes it, by a range or a Reader. Stats, Plan, Epoch, State,
// Step.Release and Close may be called from any goroutine at any time. So may Start, Stop,
// Seek and Restore, which return prefetch.ErrBusy where they would disturb a reader.
type Group struct {
	loader  *loader.Loader
	members []*prefetch.Prefetcher
	names   []string // of the devices
	plan    Plan

	turn      hold.Gate // held by a Reader until its Close, and by who moves the place
	closeOnce hold.Once
	counters  counters

	mu   sync.Mutex
	free []*gathered // steps that nobody holds
	late error       // what went wrong when nobody could be told
}

// New makes a Group that divides ld's batches among the devices of the streams, for work on
// these streams, which stay the caller's: a step has rows 0 to b-1 of the batch on the
// first device, b to 2b-1 on the second, and so on. ld's batch size is that of a whole
// step, and a multiple of the number of streams. A program is the same on one device and on
// several, and makes its steps with the same samples; see loader.Loader.Divide for what ld
// must be.
//
// o is that of each device's pipeline, with a part of the batch for a batch, apart from
// Memory.PinnedBytes, which is the budget of all together, and Memory.HostSlots: 0 means
// what prefetch.Options says, but for all devices together 128 MiB. A Transform is called for
// several devices at once.
//
// All memory, streams and events are made here, and on no other device; nothing runs before
// Start or the first range. Several streams may be of one device.
func New(streams []*device.Stream, ld *loader.Loader, o prefetch.Options) (*Group, error) {
	if err := checkStreams(streams, ld); err != nil {
		return nil, err
	}
	parts, err := ld.Divide(len(streams))
	if err != nil {
		return nil, err
	}
	g := &Group{loader: ld, turn: hold.NewGate()}
	if g.members, g.names, err = newMembers(streams, parts, o); err != nil {
		return nil, err
	}
	g.plan = makePlan(g, o)
	return g, nil
}

// newMembers makes the pipeline of each device.
func newMembers(streams []*device.Stream, parts []*loader.Loader, o prefetch.Options) (members []*prefetch.Prefetcher, names []string, err error) {
	for i, s := range streams {
		names = append(names, nameOf(s.Device()))
		each := divide(o, i, len(streams), parts[i].Layout().Size())
		if r, ok := o.Recorder.(journal.Grouped); ok {
			each.Recorder = r.Member(i)
		}
		pf, err := prefetch.New(s, parts[i], each)
		if err != nil {
			return nil, nil, joined(at(names, i, err), closeMembers(members, names))
		}
		members = append(members, pf)
	}
	return members, names, nil
}

// nameOf is a device's name, and where in the machine it is.
func nameOf(d *device.Device) string {
	if pci := d.Properties().PCI; pci != "" {
		return d.Name() + " at " + pci
	}
	return d.Name()
}

// checkStreams reports what can't be a group.
func checkStreams(streams []*device.Stream, ld *loader.Loader) error {
	var wrong []error
	mistake := func(option string, value any, want string) {
		wrong = append(wrong, &prefetch.OptionError{Option: option, Value: value, Want: want})
	}
	if ld == nil {
		mistake("ld", "nil", "a loader")
	}
	if len(streams) == 0 {
		mistake("streams", "empty", "a stream of each device")
	}
	for i, s := range streams {
		if s == nil {
			mistake(fmt.Sprintf("streams[%d]", i), "nil", "a stream of each device")
		} else if first := slices.Index(streams, s); first < i {
			mistake(fmt.Sprintf("streams[%d]", i), fmt.Sprintf("streams[%d] again", first), "each stream once")
		}
	}
	return errors.Join(wrong...)
}

// last is the member whose place is the group's. The batches of a step are taken device by
// device, and only when it has its own is the step whole.
func (g *Group) last() *prefetch.Prefetcher { return g.members[len(g.members)-1] }

// Epoch is the epoch of the cursor: that of the next step to be delivered.
func (g *Group) Epoch() int { return g.last().Epoch() }

// State is the place behind the last step delivered; in the body of a range the step in hand
// counts. It does not depend on the number of devices: a Group of others, and a Prefetcher,
// go on from it.
func (g *Group) State() loader.State { return g.last().State() }

// Restore continues where st was taken, by whatever number of devices. It fails, and changes
// nothing, if st is of another dataset, seed or version, or where Seek would.
func (g *Group) Restore(st loader.State) error {
	return g.move(func(pf *prefetch.Prefetcher) error { return pf.Restore(st) })
}

// Seek moves the cursor to a sample position of an epoch, both from 0, as that of a
// Prefetcher does.
func (g *Group) Seek(epoch int, position int64) error {
	return g.move(func(pf *prefetch.Prefetcher) error { return pf.Seek(epoch, position) })
}

// Start begins to fill batches from the cursor on, before anybody reads them; see
// prefetch.Prefetcher.Start.
func (g *Group) Start(ctx context.Context) error {
	return g.alone(func() error {
		return g.each(func(pf *prefetch.Prefetcher) error { return pf.Start(ctx) })
	})
}

// Stop ends what Start, or a range that was left, has begun, on all devices; see
// prefetch.Prefetcher.Stop.
func (g *Group) Stop() error {
	return g.alone(func() error { return g.each((*prefetch.Prefetcher).Stop) })
}

// Quiesce brings the pipelines of all devices to rest; see prefetch.Prefetcher.Quiesce.
func (g *Group) Quiesce(ctx context.Context) error {
	return g.each(func(pf *prefetch.Prefetcher) error { return pf.Quiesce(ctx) })
}

// alone runs f while nobody reads.
func (g *Group) alone(f func() error) error {
	if !g.turn.TryLock() {
		return prefetch.ErrBusy
	}
	defer g.turn.Unlock()
	return f()
}

// each calls f for every member, up to the first error.
func (g *Group) each(f func(*prefetch.Prefetcher) error) error {
	for i, pf := range g.members {
		if err := f(pf); err != nil {
			return g.at(i, err)
		}
	}
	return nil
}

// move moves every member, or none.
func (g *Group) move(to func(*prefetch.Prefetcher) error) error {
	return g.alone(func() error {
		stood := g.State()
		for i, pf := range g.members {
			if err := to(pf); err != nil {
				err = g.at(i, err)
				for _, moved := range g.members[:i] {
					err = joined(err, moved.Restore(stood))
				}
				return err
			}
		}
		return nil
	})
}

// Close closes the pipelines of all devices at once; see prefetch.Prefetcher.Close. Steps
// that were not released stay valid until they are.
func (g *Group) Close() error {
	return g.closeOnce.Do(func() error { return errors.Join(closeMembers(g.members, g.names), g.takeLate()) })
}

// closeMembers closes them side by side, because each waits for its device.
func closeMembers(members []*prefetch.Prefetcher, names []string) error {
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, pf := range members {
		all.Go(func() { errs[i] = at(names, i, pf.Close()) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// keep keeps an error for who comes next.
func (g *Group) keep(err error) {
	if err == nil || err == prefetch.ErrClosed {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late = errors.Join(g.late, err)
}

func (g *Group) takeLate() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.late
	g.late = nil
	return err
}
