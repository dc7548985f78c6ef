package waitmodel

import "time"

// A Pipeline is all that decides how the waits come about. Its functions are asked once for
// each sample or batch.
type Pipeline struct {
	// Samples are read in order in each of Epochs, 0 meaning 1, in batches of Batch rows;
	// an epoch's last may be short. Both are counted over all epochs.
	Samples, Batch, Epochs int
	// Workers read samples, one at a time each. Read is how long one takes.
	Workers int
	Read    func(sample int) time.Duration
	// HostSlots is the number of batches in host memory.
	HostSlots int
	// Device is nil for batches that stay in host memory.
	Device *Device
	// Body is how long the loop works on a batch between two calls of Next.
	Body func(batch int) time.Duration
	// Released is how long after its delivery a batch is released, by another goroutine than
	// the loop's, which calls WaitNext. If nil, its body's end releases it.
	Released func(batch int) time.Duration
}

// A Device has one engine and one stream for copies.
type Device struct {
	// Slots is the number of device slots, each of BatchesPerCopy batches.
	Slots, BatchesPerCopy int
	// Copy is how long the engine takes for so many rows in one upload.
	Copy func(rows int) time.Duration
	// Blocking says that submitting a copy blocks until it is done, as from pageable memory.
	Blocking bool
	// Transform is done to every batch between its copy and its delivery, nil for none.
	Transform *Transform
	// Streams compute on batches, Engines run their kernels; 0 means 1 of each.
	Streams, Engines int
	// Step is how long the kernel takes that the body submits.
	Step func(batch int) time.Duration
	// Synchronize says that the body waits for its kernel first.
	Synchronize bool
}

// A Transform has a stream of its own, and memory for two uploads that wait for it.
type Transform struct {
	// Apply is how long the uploader is in the call for a batch, which ends by submitting the
	// kernel. Kernel is how long that takes.
	Apply, Kernel func(batch int) time.Duration
}

// Times are when a batch came how far, since the pipeline's start.
type Times struct {
	Asked, Opened, Filled time.Duration // its host slot asked for and got, its last row written
	Placed                time.Duration // in a device slot, its copy submitted
	Copied                time.Duration // its copy done
	Delivered, Released   time.Duration
	Computed              time.Duration // its step done
}

// A Result is what a pipeline does. The figures are those of prefetch.Stats of the same
// names.
type Result struct {
	Times []Times // by batch
	Steps []Parts // where the time of each batch's step went
	Ended time.Duration

	WaitProducer, WaitOrder, WaitDevice, WaitRelease time.Duration
	Body                                             time.Duration
	WaitSlot, WaitHostSlot                           time.Duration
	WaitCopy, CopyTime                               time.Duration // as by timed events on the device
	Busy                                             time.Duration // of all workers together
	Uploads                                          int
}

// Parts are the parts of a step's time: what the batch lacked while Next waited for it, and
// the body.
type Parts struct {
	// Rows that are not written, while no later batch is filled, or one is.
	Producers, Order time.Duration
	// A host slot, all of which are in flight; any slot, all of which are the consumer's.
	HostSlot, Leases time.Duration
	// It is filled, and the uploader is blocked in a copy, or in the call of a transform, or
	// waits for a device slot that is free and still used.
	Copy, Transform, Device time.Duration
	Body                    time.Duration
}

// Wait is how long Next waited in all.
func (r *Result) Wait() time.Duration {
	return r.WaitProducer + r.WaitOrder + r.WaitDevice + r.WaitRelease
}
