package prefetch

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
)

// results are the results of a Map, and the streams that bring them back.
type results struct {
	output  Output
	layout  *loader.Layout
	like    likes            // what it has of the batches'
	streams []*device.Stream // one, or with AsFinished one for each compute stream
	all     []*result
	free    chan *result
	witness *device.Witness // the waiters: what they have seen the end of is the results' own
}

// newResults makes what o asks for, on the device of g. What it could make before an error
// is in it, for release.
func newResults(g *stages, o Output) (*results, error) {
	d := &results{output: o, witness: g.dev.NewWitness(), free: make(chan *result, o.Slots)}
	var err error
	if d.layout, err = loader.NewLayout(o.Fields, g.sizes.out.BatchSize()); err != nil {
		return d, err
	}
	if d.like, err = liken("Output.Fields", d.layout, g.sizes.out); err != nil {
		return d, err
	}
	if err := g.fitsResults(d.layout, o.Slots); err != nil {
		return d, err
	}
	streams := 1
	if o.AsFinished {
		streams = len(g.computes.Streams)
	}
	for range streams {
		s, err := g.dev.NewStream(device.StreamOptions{Name: "download"})
		if err != nil {
			return d, err
		}
		d.streams = append(d.streams, s)
	}
	for i := range o.Slots {
		r, err := newResult(g.dev, d.layout, d.like, i, d.witness)
		d.all = append(d.all, r)
		if err != nil {
			return d, err
		}
		d.free <- r
	}
	return d, nil
}

// fitsResults holds results against what the slots leave of the budgets.
func (g *stages) fitsResults(l *loader.Layout, slots int) error {
	bytes := product(int64(slots), l.Size())
	if left := g.sizes.pinned - g.pinned.pool.Stats().Bytes; bytes > left {
		return &MemoryError{What: fmt.Sprintf("%d results of Map in pinned memory beside the host slots", slots), Bytes: bytes, Budget: max(left, 0),
			Hint: "raise Memory.PinnedBytes, or use fewer Memory.HostSlots or Output.Slots"}
	}
	z := g.sizes
	if z.options.Memory.DeviceBytes > 0 {
		bytes = sum(bytes, z.slots)
	} else {
		free, _, err := g.dev.Memory()
		if err != nil {
			return err
		}
		z.device = free
	}
	return z.onDevice("results of Map", bytes)
}

func (d *results) release() error {
	var errs []error
	for _, r := range d.all {
		errs = append(errs, r.release())
	}
	for _, s := range d.streams {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// useResults makes the results, unless the last Map's serve.
func useResults(p *Prefetcher, o Output) error {
	if d := p.results; d != nil {
		if d.output.equal(o) {
			return nil
		}
		p.results = nil
		if err := d.release(); err != nil {
			return err
		}
	}
	d, err := newResults(p.stages, o)
	if err != nil {
		return errors.Join(err, d.release())
	}
	p.results = d
	return nil
}
