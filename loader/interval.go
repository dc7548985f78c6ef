package loader

import (
	"slices"
	"time"
)

// Sub is what was done from before, an earlier Stats of the same pipeline, to s. Slowest and
// FirstSkipped are those of s.
func (s Stats) Sub(before Stats) Stats {
	s.Batches -= before.Batches
	s.Samples -= before.Samples
	s.Substituted -= before.Substituted
	s.Skipped -= before.Skipped
	s.WaitSlot -= before.WaitSlot
	s.WaitBatch -= before.WaitBatch
	s.WaitOrder -= before.WaitOrder
	s.Busy, s.Reading = without(s.Busy, before.Busy), without(s.Reading, before.Reading)
	return s
}

// without is what each took more than before. There may be more of them by now.
func without(all, before []time.Duration) []time.Duration {
	all = slices.Clone(all)
	for i := range min(len(all), len(before)) {
		all[i] -= before[i]
	}
	return all
}
