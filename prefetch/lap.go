package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/invariants"
)

// A Wait binds to the newest Record issued, whichever lap that is of. Builds with the
// tag invariants look whether it is the lap that is meant: a slot that is the
// uploader's too early, or somebody's twice, shows here even where its bytes happen
// to be right.

// wrongLap reports a Wait that would bind to another lap than the one meant.
func wrongLap(stream *device.Stream, e *device.Event, meant uint64) error {
	if !invariants.Enabled || e.Records() == meant {
		return nil
	}
	return fmt.Errorf("prefetch: stream %q would wait for lap %d of event %q, lap %d is meant", stream.Name(), e.Records(), e.Name(), meant)
}
