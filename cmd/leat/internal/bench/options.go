package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-go/leat/cmd/leat/internal/units"
)

// Options say what to measure. The zero value measures everything.
type Options struct {
	// Only are the names of the parts to measure, all if empty: see Parts.
	Only []string
	// Runs is how many runs a median is taken of. 0 means 5.
	Runs int
	// Sizes are those of the batches whose overlap is measured. nil means 64 MiB and
	// 4 MiB.
	Sizes []units.Bytes
	// Images is how many images of 3×224×224 are in memory, Samples how many of
	// 28×28. 0 means 20,000 and 60,000; fewer are made where there is no memory.
	Images, Samples int
	// Timed is how many of the small samples are timed in one go, over as many
	// epochs as that takes. 0 means 4,194,304.
	Timed int
	// ImageBatch is the batch size of images. 0 means 256.
	ImageBatch int
	// Workers and Depth are the loader's and the Prefetcher's own options, 0 for
	// their defaults.
	Workers, Depth int
}

// Validate reports every mistake at once.
func (o Options) Validate() error {
	var errs []error
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			errs = append(errs, fmt.Errorf("Only names %q, want some of %s", name, strings.Join(Parts(), ", ")))
		}
	}
	for i, size := range o.Sizes {
		if size < 8 || size%8 != 0 {
			errs = append(errs, fmt.Errorf("Sizes[%d] is %d, want a multiple of 8", i, int64(size)))
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"Runs", o.Runs}, {"Images", o.Images}, {"Samples", o.Samples}, {"Timed", o.Timed}, {"ImageBatch", o.ImageBatch}, {"Workers", o.Workers}, {"Depth", o.Depth}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, want 0 or more", f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Sizes == nil {
		o.Sizes = []units.Bytes{64 << 20, 4 << 20}
	}
	for _, f := range []struct {
		value *int
		zero  int
	}{{&o.Runs, 5}, {&o.Images, 20_000}, {&o.Samples, 60_000}, {&o.Timed, 4 << 20}, {&o.ImageBatch, 256}} {
		if *f.value == 0 {
			*f.value = f.zero
		}
	}
	return o
}
