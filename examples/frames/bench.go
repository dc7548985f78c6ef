package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/busy"
	"github.com/leat-go/leat/examples/frames/film"
	"github.com/leat-go/leat/examples/frames/filter"
)

// A bench is what all ways of bringing a film through a device share.
type bench struct {
	film    *film.Film
	dev     *device.Device
	clock   *busy.Clock
	compute *device.Stream
	filter  *filter.Filter
	workers int
	host    hostTimes
}

// hostTimes are the times that a way's loop spent on frames itself.
type hostTimes struct{ prepare, check time.Duration }

// A way brings the film's first n frames through the device and has check called
// with the result of each, in order.
type way interface {
	run(ctx context.Context, n int, check func(frame int, planes planes)) error
	close() error
}

// planes are a result in host memory, borrowed for the call that gets them: luma
// and two differences of colour, each of a byte a pixel.
type planes [3][]byte

var ways = []struct {
	name string
	open func(*bench) (way, error)
}{
	{"synchronous", newSynchronous},
	{"one stream", newOneStream},
	{"pipelined", newPipelined},
}

// newBench takes dev, also if it fails.
func newBench(dev *device.Device, f *film.Film, c config) (b *bench, err error) {
	b = &bench{film: f, workers: c.workers}
	b.dev, b.clock = busy.Watch(dev)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.compute, err = b.dev.NewStream(device.StreamOptions{Name: "compute"}); err != nil {
		return b, err
	}
	b.filter, err = filter.New(b.compute, filter.Options{Width: c.width, Height: c.height, Radius: c.radius, Passes: c.passes})
	return b, err
}

// close waits for the device to come to rest and frees everything.
func (b *bench) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := b.dev.Synchronize(ctx); err != nil {
		return err // what may be in use is not freed
	}
	var errs []error
	if b.filter != nil {
		errs = append(errs, b.filter.Close())
	}
	if b.compute != nil {
		errs = append(errs, b.compute.Close())
	}
	return errors.Join(append(errs, b.dev.Close())...)
}

// warmUp is how many frames go through before the clock starts: by then memory is
// pinned, and the device awake.
const warmUp = 4

// figures are what was measured of a way.
type figures struct {
	name string
	wall time.Duration
	busy busy.Times
	host hostTimes
}

// measure runs the whole film one way, after a few frames to warm up.
func (b *bench) measure(ctx context.Context, name string, open func(*bench) (way, error)) (m figures, digests []digest, err error) {
	way, err := open(b)
	if err != nil {
		return m, nil, err
	}
	defer func() { err = errors.Join(err, way.close()) }()
	digests = make([]digest, b.film.Frames)
	check := func(frame int, planes planes) {
		start := time.Now()
		digests[frame] = b.digest(planes)
		b.host.check += time.Since(start)
	}
	if err := way.run(ctx, min(warmUp, b.film.Frames), check); err != nil {
		return m, nil, err
	}
	if _, err := b.clock.Take(ctx); err != nil {
		return m, nil, err
	}
	clear(digests)
	b.host = hostTimes{}
	start := time.Now()
	err = way.run(ctx, b.film.Frames, check)
	m = figures{name: name, wall: time.Since(start), host: b.host}
	if err != nil {
		return m, nil, err
	}
	m.busy, err = b.clock.Take(ctx)
	return m, digests, err
}

// prepare makes a frame in dst.
func (b *bench) prepare(dst []byte, frame int) {
	start := time.Now()
	n := b.film.StripBytes()
	b.strips(func(strip int) { b.film.Strip(dst[strip*n:][:n], frame, strip) })
	b.host.prepare += time.Since(start)
}

// strips calls f for each strip of a frame, by several goroutines, and joins them.
func (b *bench) strips(f func(strip int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(b.workers, b.film.Strips()) {
		wg.Go(func() {
			for {
				strip := int(next.Add(1)) - 1
				if strip >= b.film.Strips() {
					return
				}
				f(strip)
			}
		})
	}
	wg.Wait()
}

// planeBytes is the size of one of a result's three planes.
func (b *bench) planeBytes() int { return b.film.Width * b.film.Height }
