package capture

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// Options tunes a Step. The zero value is ready to use.
type Options struct {
	// Graphs is how many graphs are kept. Batches that would need more are submitted call
	// by call. 0 means 512: a pipeline of small batches has up to 96 places, each for full
	// and for last batches, and ragged fields have a graph for each length too.
	Graphs int
	// Launch submits every step call by call: to measure what graphs bring, or to see
	// whether a mistake has to do with them.
	Launch bool
}

const (
	defaultGraphs = 512
	mostGraphs    = 1 << 16
)

func (o Options) validate() error {
	if o.Graphs < 0 || o.Graphs > mostGraphs {
		return &device.OptionError{Option: "Graphs", Value: o.Graphs, Want: fmt.Sprintf("0 (%d) to %d", defaultGraphs, mostGraphs)}
	}
	return nil
}

var errLaunch = errors.New("capture: Options.Launch is set")

// words are a device.OptionError's Value that is no value but says what was found: unlike a
// string it is printed without quotes.
type words string
