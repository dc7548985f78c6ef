package pipeline_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/pipeline"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

const ms = time.Millisecond

// stand is a pipeline of batches that a card copies in 2 ms.
type stand struct {
	*rig.Rig
	tap  *devicetest.Tap
	data *feed.Stamped
	pipe *pipeline.Pipeline
}

const batches = 16

func open(t *testing.T, depth int) *stand {
	drv, err := cpu.New(cpu.Options{Model: &cpu.Model{
		H2D: cpu.Link{Latency: 2 * ms},
		KernelTime: func(l *device.Launch) time.Duration {
			if l.Kernel.Name == "spin" {
				return time.Duration(l.Args.Arg(0).Value)
			}
			return 0
		},
	}})
	require.NoError(t, err)
	s := &stand{tap: devicetest.NewTap(drv), data: feed.NewStamped(batches, 512)}
	s.Rig = rig.New(device.New(s.tap))
	s.pipe, err = pipeline.New(s.Rig, s.data, 1, loader.Options{}, prefetch.Options{Depth: depth, BatchesPerCopy: 1})
	require.NoError(t, err)
	return s
}

func (s *stand) sum(at prefetch.Position, _ int) uint64 { return s.data.Sum(int(at.First)) }

func (s *stand) close(t *testing.T) {
	require.NoError(t, s.Rig.Close())
	require.NoError(t, s.Device().Close(), "the device tells of what is left")
}

func TestTimesAreTheDevices(t *testing.T) {
	for depth, want := range map[int]pipeline.Run{
		1: {Total: batches * 5 * ms, Step: 5 * ms},
		3: {Total: 2*ms + batches*3*ms, Step: 3 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, depth)
			require.Equal(t, batches, s.pipe.Batches())
			for range 2 {
				run, err := s.pipe.Epoch(t.Context(), s.pipe.Spin(3*ms))
				require.NoError(t, err)
				require.Equal(t, want, run, "depth %d", depth)
			}
			run, err := s.pipe.Epoch(t.Context(), pipeline.Nothing)
			require.NoError(t, err)
			require.Equal(t, batches*2*ms, run.Total, "copies back to back")
			s.close(t)
		})
	}
}

func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2)
		for range 2 {
			_, err := s.pipe.Verify(t.Context(), s.sum)
			require.NoError(t, err)
		}
		armed := s.tap.Arm(devicetest.Rule{Op: devicetest.CopyH2D, Nth: 5, Swallow: true})
		_, err := s.pipe.Verify(t.Context(), s.sum)
		require.EqualValues(t, 1, armed.Fired())
		require.ErrorContains(t, err, "batch 4 of epoch 2")
		s.close(t)
	})
}

func TestAStepsErrorEndsTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2)
		failure := errors.New("no memory for the step")
		steps := 0
		_, err := s.pipe.Epoch(t.Context(), func(prefetch.Batch) error {
			if steps++; steps == 3 {
				return failure
			}
			return nil
		})
		require.ErrorIs(t, err, failure)
		require.Equal(t, 3, steps)
		s.close(t)
	})
}
