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

// Loss is the newest step's loss in device memory, a float32. It is overwritten by the
// first step after the next Report. Before the first step, and right after a Report, it
// is empty.
func (net *Network) Loss() device.View {
	if net.used == 0 {
		return device.View{}
	}
	return net.losses.Slice(int64(net.used-1)*4, 4)
}
