package loader

import "fmt"

// SizeFrom is a batch size and when it begins.
type SizeFrom struct {
	// Sample is how many samples lie before the first batch of this size, counted over all
	// ranks and epochs: the position in the first epoch, and then on. A batch that begins
	// before that keeps its size, also if it reaches beyond. An epoch counts with all its
	// samples, whether Drop or Exclude leaves some of them out or not.
	Sample int64
	// BatchSize is the number of rows of one rank's batch.
	BatchSize int
}

// checkSizes reports what is wrong with Options.BatchSizes.
func (o Options) checkSizes(wrong *mistakes) {
	most, before := maxBatch/min(max(o.Shard.Count, 1), maxBatch), int64(0)
	for i, s := range o.BatchSizes {
		option := fmt.Sprintf("BatchSizes[%d]", i)
		wrong.check(s.BatchSize >= 1 && s.BatchSize <= most, option+".BatchSize", s.BatchSize, fmt.Sprintf("1 to %d rows", most))
		wrong.check(s.Sample > before, option+".Sample", s.Sample, fmt.Sprintf("more than %d, where the size before begins", before))
		before = max(before, s.Sample)
	}
}

// scheduled is the batch sizes by the sample at which they begin, nil if there is only the
// one that was given to New, and the largest of them.
func (o Options) scheduled(batchSize int) (sizes []SizeFrom, largest int) {
	largest = batchSize
	if len(o.BatchSizes) == 0 {
		return nil, largest
	}
	sizes = append([]SizeFrom{{BatchSize: batchSize}}, o.BatchSizes...)
	for _, s := range sizes {
		largest = max(largest, s.BatchSize)
	}
	return sizes, largest
}
