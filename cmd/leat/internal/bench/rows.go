package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/pipeline"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

const (
	// imageStep is a step's compute, and imageStepGoal what the step may take.
	imageStep     = 3 * time.Millisecond
	imageStepGoal = 3.05
	imageGoal     = 0.75 // of the bus
)

// sampleGoals are by batch size, of the bus. Batches of 128 are 100 kB: copied one by
// one they would reach less than half of it.
var sampleGoals = map[int]float64{128: 0.55, 512: 0.55, 4096: 0.8}

// rows are n samples in memory, or as many as there is memory for, at least two
// batches.
func (b *bench) rows(n, batch int, shape ...int) *feed.Rows {
	bytes := 1
	for _, dim := range shape {
		bytes *= dim
	}
	if most := int(b.host) / bytes; n > most {
		n = max(most/batch, 2) * batch
		b.skip("more than %d samples of %v: data may take %v here", n, shape, b.host)
	}
	return feed.NewRows(max(n, 2*batch), shape...)
}

// measureImages shuffles images in memory onto the device.
func (b *bench) measureImages(ctx context.Context) error {
	data := b.rows(b.Images, b.ImageBatch, 3, 224, 224)
	return b.shuffled(ctx, data, b.ImageBatch, 1, func(s shuffled) error {
		b.add(s.rate("images", "images").atLeast(imageGoal))
		t := Target{Name: "images/step", Unit: "ms", Detail: fmt.Sprintf("compute %v, batch %d", imageStep, b.ImageBatch)}
		for range b.Runs {
			run, err := s.pipe.Epoch(ctx, s.pipe.Spin(imageStep))
			if err != nil {
				return err
			}
			t.Runs = append(t.Runs, run.Step.Seconds()*1000)
		}
		t.Value = measure.Median(t.Runs)
		b.add(t.atMost(imageStepGoal))
		return nil
	})
}

// measureSamples does the same with samples as small as MNIST's, and in one go over
// so many epochs that their borders would count if there were gaps at them.
func (b *bench) measureSamples(ctx context.Context) error {
	data := b.rows(b.Samples, 4096, 28, 28)
	for _, batch := range []int{128, 512, 4096} {
		epochs := max(1, b.Timed/data.Len())
		err := b.shuffled(ctx, data, batch, epochs, func(s shuffled) error {
			b.add(s.rate(fmt.Sprintf("samples/batch=%d", batch), "samples").atLeast(sampleGoals[batch]))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shuffled is a pipeline of shuffled rows, verified and timed.
type shuffled struct {
	pipe  *pipeline.Pipeline
	batch int
	bytes int64         // of a batch
	bus   time.Duration // of a batch's copy alone
	runs  []time.Duration
}

// shuffled verifies an epoch, times others without compute, so many at once, and
// calls then.
func (b *bench) shuffled(ctx context.Context, data *feed.Rows, batch, epochs int, then func(shuffled) error) error {
	return b.on(func(r *rig.Rig) error {
		lo := loader.Options{Shuffle: true, Workers: b.Workers, Last: loader.Drop}
		if epochs > 1 {
			lo.Epochs = 1 + b.Runs*epochs
		}
		pipe, err := pipeline.New(r, data, batch, lo, prefetch.Options{Depth: b.Depth})
		if err != nil {
			return err
		}
		s := shuffled{pipe: pipe, batch: batch, bytes: pipe.Plan().BatchBytes}
		scratch := make([]byte, 0, s.bytes)
		_, err = pipe.Verify(ctx, func(at prefetch.Position, rows int) uint64 {
			return data.Sum(pipe.Order(at.Epoch), at.First, rows, scratch)
		})
		if err != nil {
			return err
		}
		for range b.Runs {
			run, err := pipe.Epochs(ctx, epochs, pipeline.Nothing)
			if err != nil {
				return err
			}
			if epochs > 1 {
				run.Total = run.Step * time.Duration(pipe.Batches())
			}
			s.runs = append(s.runs, run.Total)
		}
		// A copy that carries several batches is compared with the bus at its size.
		carried := max(int64(pipe.Plan().Options.BatchesPerCopy), 1)
		if s.bus, err = b.copyTime(ctx, carried*s.bytes); err != nil {
			return err
		}
		s.bus /= time.Duration(carried)
		return then(s)
	})
}

// rate is the share of the bus's own rate that the epochs reached.
func (s shuffled) rate(name, noun string) Target {
	n := s.pipe.Batches()
	t := Target{Name: name, Unit: "of the bus"}
	for _, total := range s.runs {
		t.Runs = append(t.Runs, float64(time.Duration(n)*s.bus)/float64(total))
	}
	t.Value = measure.Median(t.Runs)
	perSecond := float64(n*s.batch) / measure.Median(s.runs).Seconds()
	t.Detail = fmt.Sprintf("%.4g %s/s, %v; the bus %v", perSecond, noun,
		units.Rate(perSecond*float64(s.bytes)/float64(s.batch)), units.RateOf(units.Bytes(s.bytes), s.bus))
	return t
}
