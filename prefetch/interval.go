package prefetch

// Sub is what was counted from before, an earlier Stats of the same Prefetcher, to s. What
// are no sums, as Leases, Free and the state of Pool, are those of s.
func (s Stats) Sub(before Stats) Stats {
	s.Batches -= before.Batches
	s.Samples -= before.Samples
	s.Bytes -= before.Bytes
	s.Uploads -= before.Uploads
	s.WaitProducer -= before.WaitProducer
	s.WaitOrder -= before.WaitOrder
	s.WaitDevice -= before.WaitDevice
	s.WaitRelease -= before.WaitRelease
	s.Body -= before.Body
	s.WaitSlot -= before.WaitSlot
	s.WaitHostSlot -= before.WaitHostSlot
	s.WaitCopy -= before.WaitCopy
	s.CopyTime -= before.CopyTime
	s.TimedUploads -= before.TimedUploads
	s.Pool.Gets -= before.Pool.Gets
	s.Pool.Waits -= before.Pool.Waits
	s.Pool.WaitTime -= before.Pool.WaitTime
	s.Loader = s.Loader.Sub(before.Loader)
	return s
}
