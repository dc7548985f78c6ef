// Package pipeline times and verifies epochs that go through the public prefetch
// API, with the device's own clock.
package pipeline

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A Pipeline is a Prefetcher and the events that time it. Its loader has no stated
// number of epochs, so that each epoch starts by itself. It is for one goroutine.
type Pipeline struct {
	*prefetch.Prefetcher
	// Compute is the stream that the batches are used on.
	Compute *device.Stream

	loader             *loader.Loader
	batches            int // of an epoch
	start, steady, end *device.Event
	sums               device.View // of an epoch's batches
	read               []byte      // the sums, on the host
}

// sumBytes is the size of a batch's checksum.
const sumBytes = 8

// New makes a pipeline that r owns.
func New(r *rig.Rig, ds loader.Dataset, batchSize int, lo loader.Options, po prefetch.Options) (*Pipeline, error) {
	ld, err := loader.New(ds, batchSize, lo)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{
		loader:  ld,
		Compute: r.Stream("compute"),
		start:   r.Event("start"), steady: r.Event("steady"), end: r.Event("end"),
	}
	p.batches, _ = ld.Batches()
	p.sums = r.Alloc(int64(p.batches) * sumBytes)
	p.read = r.AllocHost(int64(p.batches)*sumBytes, device.HostOptions{})
	if err := r.Err(); err != nil {
		return nil, err
	}
	if p.Prefetcher, err = prefetch.New(p.Compute, ld, po); err != nil {
		return nil, err
	}
	r.Owns(p.Close)
	return p, nil
}

// Batches is the number of batches in an epoch.
func (p *Pipeline) Batches() int { return p.batches }

// Order is the order of an epoch's samples.
func (p *Pipeline) Order(epoch int) *loader.Order { return p.loader.Order(epoch) }

// A Run is the times of an epoch, or several as one, on the device.
type Run struct {
	// Total is from the request for the first batch, with nothing under way, to the
	// end of the last step.
	Total time.Duration
	// Step is from a step's end to the next one's, on average over the last three
	// quarters of the batches.
	Step time.Duration
}

// Epoch runs the next epoch and submits step for each batch.
func (p *Pipeline) Epoch(ctx context.Context, step func(prefetch.Batch) error) (Run, error) {
	return p.Epochs(ctx, 1, step)
}

// Epochs runs the next epochs as one. Where the loader has a stated number of them
// there is no gap at their borders, and something may be under way at the start:
// Step then tells more than Total.
func (p *Pipeline) Epochs(ctx context.Context, epochs int, step func(prefetch.Batch) error) (Run, error) {
	if err := p.Compute.Record(p.start); err != nil {
		return Run{}, err
	}
	all := epochs * p.batches
	warm := max(all/4, 1)
	n := 0
	for range epochs {
		for b, err := range p.Prefetcher.Batches(ctx) {
			if err == nil {
				err = step(b)
			}
			n++
			if err == nil && n == warm {
				err = p.Compute.Record(p.steady)
			}
			if err == nil && n == all { // not behind the loop, whose end takes the host time
				err = p.Compute.Record(p.end)
			}
			if err != nil {
				return Run{}, err
			}
		}
	}
	if n != all {
		return Run{}, fmt.Errorf("%d batches came, want %d", n, all)
	}
	return p.times(ctx, n-warm)
}

func (p *Pipeline) times(ctx context.Context, steps int) (Run, error) {
	if err := p.end.Synchronize(ctx); err != nil {
		return Run{}, err
	}
	total, err := device.Elapsed(p.start, p.end)
	if err != nil {
		return Run{}, err
	}
	r := Run{Total: total, Step: total}
	if steps > 0 {
		steady, err := device.Elapsed(p.steady, p.end)
		if err != nil {
			return Run{}, err
		}
		r.Step = steady / time.Duration(steps)
	}
	return r, nil
}

// Spin is a step that keeps compute busy for d.
func (p *Pipeline) Spin(d time.Duration) func(prefetch.Batch) error {
	return func(b prefetch.Batch) error { return kernels.Spin(b.Stream(), d) }
}

// Nothing is a step without work.
func Nothing(prefetch.Batch) error { return nil }

// Verify runs the next epoch, computes the checksum of each batch's one field on
// the device, and compares it with sum's, which is told the batch's place and
// number of rows.
func (p *Pipeline) Verify(ctx context.Context, sum func(at prefetch.Position, rows int) uint64) (Run, error) {
	type batch struct {
		at   prefetch.Position
		rows int
	}
	seen := make([]batch, 0, p.batches)
	r, err := p.Epoch(ctx, func(b prefetch.Batch) error {
		to := p.sums.Slice(int64(len(seen))*sumBytes, sumBytes)
		seen = append(seen, batch{b.Position(), b.Len()})
		return kernels.Checksum(b.Stream(), to, b.Field("batch").View)
	})
	if err != nil {
		return r, err
	}
	if err := p.Compute.CopyD2H(p.read, p.sums); err != nil {
		return r, err
	}
	if err := p.Compute.Synchronize(ctx); err != nil {
		return r, err
	}
	for i, b := range seen {
		got := binary.LittleEndian.Uint64(p.read[i*sumBytes:])
		if want := sum(b.at, b.rows); got != want {
			return r, fmt.Errorf("batch %d of epoch %d arrived with checksum %016x, want %016x", b.at.Batch, b.at.Epoch, got, want)
		}
	}
	return r, nil
}
