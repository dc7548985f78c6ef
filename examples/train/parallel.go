package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/examples/train/mnist"
	"github.com/leat-go/leat/examples/train/nn"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
	"github.com/leat-go/leat/prefetch/group"
)

// A parallel is a training by several devices: each has the whole network and works on its
// part of every batch, and they learn from the mean of all gradients.
type parallel struct {
	replicas []*replica
	g        *group.Group
	test     *prefetch.Prefetcher // test samples, for the first replica
	parts    int                  // of a batch, the same number on each device
	batches  int
	closers  []func() error // in order of making
}

// A replica is the network on one device.
type replica struct {
	dev     *device.Device
	compute *device.Stream
	net     *nn.Network
	// gradients are those of all parts of the batch. This replica computes the ones from
	// first on, and fetches the others from theirs.
	gradients device.View
	first     int
	// computed is behind its own gradients, fetched behind its copies of the others'.
	computed, fetched *device.Event
}

func newParallel(ctx context.Context, c config) (p *parallel, err error) {
	names := strings.Split(c.devices, ",")
	p = &parallel{parts: max(c.parts, len(names))}
	if p.parts%len(names) != 0 || c.batchSize%p.parts != 0 {
		return nil, fmt.Errorf("a batch of %d samples in %d parts (-parts) can't be divided evenly among %d devices", c.batchSize, p.parts, len(names))
	}
	train, test, err := mnist.Open(ctx, c.data)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	for _, name := range names {
		if err := p.open(name); err != nil {
			return p, err
		}
	}
	if err := p.connect(ctx); err != nil {
		return p, err
	}
	c.prefetch.Transform, err = chain.New(train.Fields(), chain.Normalize("image", chain.NormalizeOptions{Std: []float32{0.3}}))
	if err != nil {
		return p, err
	}
	c.loader.Last = loader.Drop // each part of a batch counts as much as every other
	if err := p.feed(train, test, c); err != nil {
		return p, err
	}
	for i, r := range p.replicas {
		if err := p.network(r, i, c); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *parallel) onClose(f func() error) { p.closers = append(p.closers, f) }

// open opens one device.
func (p *parallel) open(name string) (err error) {
	r := &replica{}
	if r.dev, err = auto.Open(name); err != nil {
		return err
	}
	p.onClose(r.dev.Close)
	p.replicas = append(p.replicas, r)
	if r.compute, err = r.dev.NewStream(device.StreamOptions{Name: "compute"}); err != nil {
		return err
	}
	p.onClose(r.compute.Close)
	for name, e := range map[string]**device.Event{"computed": &r.computed, "fetched": &r.fetched} {
		if *e, err = r.dev.NewEvent(device.EventOptions{Name: name}); err != nil {
			return err
		}
		p.onClose((*e).Close)
	}
	return nil
}

// connect opens the way between every two devices, and says which it is.
func (p *parallel) connect(ctx context.Context) error {
	for i, a := range p.replicas {
		for j, b := range p.replicas {
			if i == j {
				continue
			}
			way, err := a.dev.Connect(ctx, b.dev)
			if err != nil {
				return err
			}
			if way.Kind != device.UnknownWay {
				fmt.Printf("from %v to %v: %v. %s\n", a.dev, b.dev, way.Kind, way.Why)
			}
		}
	}
	return nil
}

// feed makes the pipelines.
func (p *parallel) feed(train, test loader.Dataset, c config) error {
	ld, err := loader.New(train, c.batchSize, c.loader)
	if err != nil {
		return err
	}
	p.batches, _ = ld.Batches()
	testLoader, err := loader.New(test, testBatch, loader.Options{Workers: c.loader.Workers})
	if err != nil {
		return err
	}
	var streams []*device.Stream
	for _, r := range p.replicas {
		streams = append(streams, r.compute)
	}
	if p.g, err = group.New(streams, ld, c.prefetch); err != nil {
		return err
	}
	p.onClose(p.g.Close)
	if p.test, err = prefetch.New(streams[0], testLoader, prefetch.Options{Transform: c.prefetch.Transform}); err != nil {
		return err
	}
	p.onClose(p.test.Close)
	return nil
}

// network makes the network of a replica, the same on each.
func (p *parallel) network(r *replica, number int, c config) (err error) {
	each := p.parts / len(p.replicas)
	r.first = number * each
	r.net, err = nn.New(r.compute, nn.Options{
		Inputs: 28 * 28, Classes: 10, MaxBatch: max(c.batchSize/p.parts, testBatch), Seed: c.loader.Seed,
		Images:     dtype.Float32,
		DecaySteps: c.epochs * p.batches, ReportSteps: max(p.batches*each, 10000/testBatch) + 1,
	})
	if err != nil {
		return err
	}
	p.onClose(r.net.Close)
	b, err := r.dev.Alloc(int64(p.parts) * r.net.GradientBytes())
	if err != nil {
		return err
	}
	p.onClose(b.Close)
	r.gradients = b.View()
	return nil
}

// close frees what newParallel made, last first, when the devices have come to rest.
func (p *parallel) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var errs []error
	for _, r := range p.replicas {
		errs = append(errs, r.dev.Synchronize(ctx))
	}
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	return errors.Join(errs...)
}

// step submits one step to all devices and waits for none. The events are all that orders
// them: nobody adds gradients before it has fetched them, and nobody computes the next ones
// before the others have fetched these.
func (p *parallel) step(s group.Step) error {
	for i, r := range p.replicas {
		for _, other := range p.replicas {
			if other == r || r.net.Steps() == 0 {
				continue
			}
			if err := r.compute.Wait(other.fetched); err != nil { // of the step before
				return err
			}
		}
		if err := p.compute(r, s.Batches[i]); err != nil {
			return err
		}
		if err := r.compute.Record(r.computed); err != nil {
			return err
		}
	}
	for _, r := range p.replicas {
		if err := p.fetch(r); err != nil {
			return err
		}
		if err := r.compute.Record(r.fetched); err != nil {
			return err
		}
		if err := r.net.Update(r.compute, r.gradients, p.parts); err != nil {
			return err
		}
	}
	return nil
}

// compute submits the gradients of r's parts of a batch.
func (p *parallel) compute(r *replica, batch prefetch.Batch) error {
	each := p.parts / len(p.replicas)
	images, labels := batch.Field("image").View, batch.Field("label").View
	for i := range each {
		rows := func(v device.View) device.View {
			size := v.Size() / int64(each)
			return v.Slice(int64(i)*size, size)
		}
		if err := r.net.Gradient(r.compute, r.gradient(r.first+i), rows(images), rows(labels), batch.Len()/each); err != nil {
			return err
		}
	}
	return nil
}

// fetch submits the copies of the others' gradients.
func (p *parallel) fetch(r *replica) error {
	each := p.parts / len(p.replicas)
	for _, other := range p.replicas {
		if other == r {
			continue
		}
		if err := r.compute.Wait(other.computed); err != nil {
			return err
		}
		for i := range each {
			if err := r.compute.CopyPeer(r.gradient(other.first+i), other.gradient(other.first+i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *replica) gradient(part int) device.View {
	size := r.net.GradientBytes()
	return r.gradients.Slice(int64(part)*size, size)
}

// runParallel is run for -devices.
func runParallel(ctx context.Context, c config) (err error) {
	p, err := newParallel(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	fmt.Println(p.g.Plan())
	summary, err := p.train(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n", p.g.Stats())
	return summary.print(c.json)
}

// train is the loop over the epochs, each followed by an evaluation on the first device.
func (p *parallel) train(ctx context.Context) (summary, error) {
	start := time.Now()
	s := summary{Device: p.names()}
	for epoch, steps := range p.g.Epochs(ctx) {
		from := time.Now()
		for step, err := range steps {
			if err == nil {
				err = p.step(step)
			}
			if err != nil {
				return summary{}, err
			}
		}
		trained, err := p.report(ctx)
		if err != nil {
			return summary{}, err
		}
		took := time.Since(from).Seconds()
		tested, err := p.evaluate(ctx)
		if err != nil {
			return summary{}, err
		}
		fmt.Printf("epoch %d: loss %.5f, test accuracy %.2f%%, %.3f s of training\n", epoch+1, trained.Loss, 100*tested.Accuracy, took)
		s.Losses, s.EpochSeconds = append(s.Losses, trained.Loss), append(s.EpochSeconds, took)
		s.Loss, s.Accuracy = trained.Loss, tested.Accuracy
		s.Samples += int64(trained.Samples)
	}
	plan := p.g.Plan()
	s.Epochs, s.Depth = len(s.Losses), plan.Devices[0].Depth
	s.PinnedBytes, s.DeviceBytes = plan.HostBytes, plan.DeviceBytes
	s.Seconds = time.Since(start).Seconds()
	s.SamplesPerSecond = float64(s.Samples) / s.Seconds
	return s, nil
}

func (p *parallel) names() string {
	var names []string
	for _, r := range p.replicas {
		names = append(names, r.dev.Name())
	}
	return strings.Join(names, ",")
}

// report is that of all devices. The losses are added in the order of the parts, so that it
// does not depend on the devices either.
func (p *parallel) report(ctx context.Context) (all nn.Report, err error) {
	each := p.parts / len(p.replicas)
	var losses [][]float32
	for _, r := range p.replicas {
		one, err := r.net.Report(ctx, r.compute)
		if err != nil {
			return nn.Report{}, err
		}
		all.Samples += one.Samples
		losses = append(losses, one.Losses)
	}
	for at := 0; at < len(losses[0]); at += each {
		all.Steps++
		for _, of := range losses {
			for _, loss := range of[at : at+each] {
				all.Loss += float64(loss)
			}
		}
	}
	all.Loss /= float64(all.Steps * p.parts)
	return all, nil
}

// evaluate is a pass over all test samples.
func (p *parallel) evaluate(ctx context.Context) (nn.Report, error) {
	r := p.replicas[0]
	for batch, err := range p.test.Pass(ctx) {
		if err != nil {
			return nn.Report{}, err
		}
		if err := r.net.Eval(batch.Stream(), batch.Field("image").View, batch.Field("label").View, batch.Len()); err != nil {
			return nn.Report{}, err
		}
	}
	return r.net.Report(ctx, r.compute)
}
