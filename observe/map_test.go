package observe_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/timeline"
	"github.com/leat-go/leat/prefetch"
)

// A Map's steps are steps, and its results' way back is in the table and has a lane.
func TestResultsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{samples: 20, read: same(ms), copy: takes(ms)}
		rec := observe.NewRecorder(observe.Options{})
		pf, end := l.open(t, rec)
		defer end()
		o := prefetch.Output{Fields: []loader.Field{{Name: "y", DType: dtype.Uint8}}}
		for _, err := range pf.Map(t.Context(), o, func(b prefetch.Batch, out prefetch.Fields) error {
			out.Field("y")
			return b.Stream().Launch(cpu.Busy(4 * ms))
		}) {
			require.NoError(t, err)
		}
		s := observe.Take(pf)
		require.EqualValues(t, 20, s.Host.Steps)
		require.EqualValues(t, 20, s.Host.Downloads.Count())
		require.EqualValues(t, 20, s.Host.DownloadBytes)
		require.Contains(t, s.String(), "a result's way back")
		require.Len(t, rec.Timeline("").Group(timeline.Downloads), 1)
	})
}
