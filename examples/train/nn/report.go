package nn

import (
	"context"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// A Report is what happened in the steps since the one before.
type Report struct {
	// Loss is the mean over all samples, Accuracy the share classified well; both
	// are of each step's parameters before its update.
	Loss, Accuracy float64
	// Samples is how many there were, Steps in how many batches.
	Samples, Steps int
	// Losses is the mean loss of each step. It is borrowed until the next Report.
	Losses []float32
}

// Report waits until s has run all steps submitted to it, and says how they went.
// It ends an epoch, or an evaluation.
func (net *Network) Report(ctx context.Context, s *device.Stream) (Report, error) {
	steps := net.used
	if steps == 0 {
		return Report{}, nil
	}
	host := net.report.Bytes()
	losses, counts := host[:steps*4], host[len(host)/2:][:steps*4]
	if err := s.CopyD2H(losses, net.losses.Slice(0, int64(steps)*4)); err != nil {
		return Report{}, err
	}
	if err := s.CopyD2H(counts, net.correct.Slice(0, int64(steps)*4)); err != nil {
		return Report{}, err
	}
	if err := s.Synchronize(ctx); err != nil {
		return Report{}, err
	}
	net.used = 0
	return net.sum(dtype.As[float32](losses), dtype.As[uint32](counts)), nil
}

func (net *Network) sum(losses []float32, correct []uint32) Report {
	r := Report{Steps: len(losses), Losses: losses}
	for i, loss := range losses {
		n := net.samples[i]
		r.Samples += n
		r.Loss += float64(loss) * float64(n)
		r.Accuracy += float64(correct[i])
	}
	r.Loss /= float64(r.Samples)
	r.Accuracy /= float64(r.Samples)
	return r
}

// latest carries one loss at a time to the host behind the training's back.
type latest struct {
	host    *device.HostBuffer
	arrived *device.Event
	asked   bool
	loss    float32
}

func newLatest(d *device.Device) (latest, error) {
	host, err := d.AllocHost(4, device.HostOptions{Pageable: true})
	if err != nil {
		return latest{}, err
	}
	arrived, err := d.NewEvent(device.EventOptions{Name: "nn latest loss"})
	if err != nil {
		return latest{host: host}, err
	}
	return latest{host: host, arrived: arrived}, nil
}

func (l *latest) close() error {
	var err error
	if l.arrived != nil {
		err = l.arrived.Close()
	}
	if l.host != nil {
		if e := l.host.Close(); err == nil {
			err = e
		}
	}
	*l = latest{}
	return err
}

// LatestLoss is the newest loss that has reached the host, 0 before the first. It
// also asks s for that of the newest step, for the next call to find. It never
// waits: a progress line calls it as often as it is drawn.
func (net *Network) LatestLoss(s *device.Stream) (float32, error) {
	l := &net.latest
	if l.asked {
		done, err := l.arrived.Done()
		if err != nil || !done {
			return l.loss, err
		}
		l.loss, l.asked = dtype.As[float32](l.host.Bytes())[0], false
	}
	if net.used == 0 {
		return l.loss, nil
	}
	if err := s.CopyD2H(l.host.Bytes(), net.losses.Slice(int64(net.used-1)*4, 4)); err != nil {
		return l.loss, err
	}
	l.asked = true
	return l.loss, s.Record(l.arrived)
}
