package waitmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/internal/waitmodel"
)

const ms = time.Millisecond

// each is the duration of each sample or batch.
func each(d ...time.Duration) func(int) time.Duration {
	return func(i int) time.Duration { return d[i] }
}

func always(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// run is waitmodel.Run, of which the parts of the steps must be the whole figures.
func run(t *testing.T, p waitmodel.Pipeline) *waitmodel.Result {
	t.Helper()
	r := waitmodel.Run(p)
	require.Len(t, r.Steps, len(r.Times))
	var all waitmodel.Parts
	for i, s := range r.Steps {
		all.Producers += s.Producers
		all.Order += s.Order
		all.Device += s.HostSlot + s.Copy + s.Transform + s.Device
		all.Leases += s.Leases
		all.Body += s.Body
		require.GreaterOrEqual(t, r.Times[i].Delivered, s.Producers+s.Order)
	}
	require.Equal(t, waitmodel.Parts{Producers: r.WaitProducer, Order: r.WaitOrder, Device: r.WaitDevice, Leases: r.WaitRelease, Body: r.Body}, all)
	r.Steps = nil
	return r
}

// Worked out by hand, with a ruler.

func TestOneSlowSampleOfThree(t *testing.T) {
	// One worker: nothing is ever complete behind what Next waits for.
	//
	//	reads  |0 10|10            40|40 50|
	//	Next   |0 10|10            40|40 50|
	r := run(t, waitmodel.Pipeline{
		Samples: 3, Batch: 1, Workers: 1, HostSlots: 3, Read: each(10*ms, 30*ms, 10*ms), Body: always(0),
	})
	require.Equal(t, &waitmodel.Result{
		Times: []waitmodel.Times{
			{Filled: 10 * ms, Delivered: 10 * ms, Released: 10 * ms},
			{Filled: 40 * ms, Delivered: 40 * ms, Released: 40 * ms},
			{Filled: 50 * ms, Delivered: 50 * ms, Released: 50 * ms},
		},
		Ended: 50 * ms, WaitProducer: 50 * ms, Busy: 50 * ms,
	}, r)

	// Two: the third sample is read by 20, beside the second.
	//
	//	reads  |0 10|10 20|
	//	       |0            30|
	//	Next   |0 10|10 20|20 30|     the last third is for the order
	r = run(t, waitmodel.Pipeline{
		Samples: 3, Batch: 1, Workers: 2, HostSlots: 3, Read: each(10*ms, 30*ms, 10*ms), Body: always(0),
	})
	require.Equal(t, &waitmodel.Result{
		Times: []waitmodel.Times{
			{Filled: 10 * ms, Delivered: 10 * ms, Released: 10 * ms},
			{Filled: 30 * ms, Delivered: 30 * ms, Released: 30 * ms},
			{Filled: 20 * ms, Delivered: 30 * ms, Released: 30 * ms},
		},
		Ended: 30 * ms, WaitProducer: 20 * ms, WaitOrder: 10 * ms, Busy: 50 * ms,
	}, r)

	// With two slots the third sample has to wait for the first batch's release, at 15.
	//
	//	reads  |0 10|     |15  25|
	//	       |0                30|
	//	loop   |0 10|body 15|Next 25|25 30|body 35|body 40|
	r = run(t, waitmodel.Pipeline{
		Samples: 3, Batch: 1, Workers: 2, HostSlots: 2, Read: each(10*ms, 30*ms, 10*ms), Body: always(5 * ms),
	})
	require.Equal(t, &waitmodel.Result{
		Times: []waitmodel.Times{
			{Filled: 10 * ms, Delivered: 10 * ms, Released: 15 * ms},
			{Filled: 30 * ms, Delivered: 30 * ms, Released: 35 * ms},
			{Opened: 15 * ms, Filled: 25 * ms, Delivered: 35 * ms, Released: 40 * ms},
		},
		Ended: 40 * ms, WaitProducer: 20 * ms, WaitOrder: 5 * ms, Body: 15 * ms, Busy: 50 * ms,
	}, r, "a worker was idle from 10 to 15, but not both: the second batch was still to be filled")
}

// A loop with one slot, no device, and a body that takes no time: all of its waiting is for
// reads.
func TestOneHostSlotIsNoDevice(t *testing.T) {
	r := run(t, waitmodel.Pipeline{Samples: 40, Batch: 1, Workers: 1, HostSlots: 1, Read: always(5 * ms), Body: always(0)})
	require.Equal(t, 200*ms, r.WaitProducer)
	require.Equal(t, 200*ms, r.Wait())
	require.Equal(t, 200*ms, r.Ended)
	require.Zero(t, r.WaitHostSlot)
}

// With one slot a body stops the reading: the producers wait for it, and Next for them.
func TestOneHostSlotAndABody(t *testing.T) {
	//	reads |0 5|        |8 13|         |16 21|
	//	loop      |5 body 8|    |13 body 16|    |21 body 24|
	r := run(t, waitmodel.Pipeline{Samples: 3, Batch: 1, Workers: 1, HostSlots: 1, Read: always(5 * ms), Body: always(3 * ms)})
	require.Equal(t, 24*ms, r.Ended)
	require.Equal(t, 15*ms, r.WaitProducer)
	require.Equal(t, 9*ms, r.Body)
	require.Equal(t, 6*ms, r.WaitHostSlot, "during the first two bodies")
}

// Somebody else releases, late: Next waits for that, and neither for producers nor for a
// device.
func TestLateReleases(t *testing.T) {
	//	slot  |0 5 read|held          25|25 30 read|held     50|
	r := run(t, waitmodel.Pipeline{
		Samples: 2, Batch: 1, Workers: 1, HostSlots: 1, Read: always(5 * ms), Body: always(2 * ms), Released: always(20 * ms),
	})
	require.Equal(t, 10*ms, r.WaitProducer)
	require.Equal(t, 18*ms, r.WaitRelease, "from the first body's end at 7 to its release at 25")
	require.Equal(t, 20*ms, r.WaitHostSlot, "from 5 on")
	require.Equal(t, 4*ms, r.Body)
	require.Equal(t, 32*ms, r.Ended)

	// The same of device slots, here one. The copy takes 1, the step nothing.
	//
	//	reads  |0 5|5 10|
	//	slot       |5 copy 6|held      25|25 copy 26|
	//	Next   |0 5|body 7|7   10|10   25|body 27|
	r = run(t, waitmodel.Pipeline{
		Samples: 2, Batch: 1, Workers: 1, HostSlots: 2, Read: always(5 * ms), Body: always(2 * ms), Released: always(20 * ms),
		Device: &waitmodel.Device{Slots: 1, BatchesPerCopy: 1, Copy: always(ms), Step: always(0)},
	})
	require.Equal(t, 8*ms, r.WaitProducer, "5 for the first batch, 3 for the rest of the second")
	require.Equal(t, 15*ms, r.WaitRelease)
	require.Equal(t, 15*ms, r.WaitSlot)
	require.Zero(t, r.WaitDevice)
	require.Equal(t, 27*ms, r.Ended)
	require.Equal(t, 25*ms, r.Times[1].Delivered)
	require.Equal(t, 26*ms, r.Times[1].Copied)
}

func TestThreeBatchesThroughADevice(t *testing.T) {
	// Reads 10, 30, 10; a copy 2, a step 5. Two host slots, two device slots.
	//
	//	reads    |0 10|10               40|40 50|
	//	copies        |10 12|             |40 42|  |50 52|
	//	steps              |12 17|             |42 47|  |52 57|
	//	loop     |0 10|                   |40    |50
	r := run(t, waitmodel.Pipeline{
		Samples: 3, Batch: 1, Workers: 1, HostSlots: 2, Read: each(10*ms, 30*ms, 10*ms), Body: always(0),
		Device: &waitmodel.Device{Slots: 2, BatchesPerCopy: 1, Copy: always(2 * ms), Step: always(5 * ms)},
	})
	require.Equal(t, &waitmodel.Result{
		Times: []waitmodel.Times{
			{Filled: 10 * ms, Placed: 10 * ms, Copied: 12 * ms, Delivered: 10 * ms, Released: 10 * ms, Computed: 17 * ms},
			{Filled: 40 * ms, Placed: 40 * ms, Copied: 42 * ms, Delivered: 40 * ms, Released: 40 * ms, Computed: 47 * ms},
			{Opened: 12 * ms, Filled: 50 * ms, Placed: 50 * ms, Copied: 52 * ms, Delivered: 50 * ms, Released: 50 * ms, Computed: 57 * ms},
		},
		Ended: 50 * ms, WaitProducer: 50 * ms, WaitCopy: 6 * ms, CopyTime: 6 * ms, Busy: 50 * ms, Uploads: 3,
	}, r)
}

// A slow step, one device slot and one host slot: the copy of a batch waits for the step of
// the one before, the host slot for the copy, and Next for the device.
func TestASlowStep(t *testing.T) {
	//	reads    |0 1|  |3 4|                |25 26|                 |47 48|
	//	copies   |1 3|      |       23 25|         |        45 47|
	//	steps        |3          23|     |25           45|       |47           67|
	//	loop     |0 1|  |  4|            |        26 |                     48|
	r := run(t, waitmodel.Pipeline{
		Samples: 4, Batch: 1, Workers: 1, HostSlots: 1, Read: always(ms), Body: always(0),
		Device: &waitmodel.Device{Slots: 1, BatchesPerCopy: 1, Copy: always(2 * ms), Step: always(20 * ms)},
	})
	require.Equal(t, 48*ms, r.Ended)
	require.Equal(t, 4*ms, r.WaitProducer)
	require.Equal(t, (2+21+21)*ms, r.WaitDevice)
	require.Equal(t, 48*ms, r.Wait())
	require.Equal(t, 44*ms, r.WaitHostSlot, "as long as Next waited for the device")
	require.Zero(t, r.WaitSlot, "the loop releases at once")
	require.Equal(t, 89*ms, r.Times[3].Computed)
	require.Equal(t, 8*ms, r.WaitCopy, "compute stands still for every copy, with one device slot")
}

// A body that waits for its step keeps the device slot for as long, and the uploader waits.
func TestABodyThatSynchronizes(t *testing.T) {
	//	reads    |0 1|1 2|2 3|      in three host slots
	//	slot     |1 copy 3|step 23|23 copy 25|step 45|45 copy 47|step 67|
	r := run(t, waitmodel.Pipeline{
		Samples: 3, Batch: 1, Workers: 1, HostSlots: 3, Read: always(ms), Body: always(0),
		Device: &waitmodel.Device{Slots: 1, BatchesPerCopy: 1, Copy: always(2 * ms), Step: always(20 * ms), Synchronize: true},
	})
	require.Equal(t, 67*ms, r.Ended)
	require.Equal(t, ms, r.WaitProducer)
	require.Equal(t, ms, r.Wait())
	require.Equal(t, 66*ms, r.Body)
	require.Equal(t, (21+22)*ms, r.WaitSlot, "from 2 to 23, and from there to 45")
	require.Equal(t, 6*ms, r.WaitCopy)
}

// From pageable memory the uploader is kept by each copy until it is done.
func TestACopyThatBlocks(t *testing.T) {
	//	reads    |0 1|1 2|
	//	copies   |1      11|11      21|
	//	Next     |0 1|   11|        21|
	r := run(t, waitmodel.Pipeline{
		Samples: 2, Batch: 1, Workers: 1, HostSlots: 2, Read: always(ms), Body: always(0),
		Device: &waitmodel.Device{Slots: 2, BatchesPerCopy: 1, Copy: always(10 * ms), Blocking: true, Step: always(0)},
	})
	require.Equal(t, ms, r.WaitProducer)
	require.Equal(t, 20*ms, r.WaitDevice)
	require.Equal(t, 21*ms, r.Ended)
}

// A transform of 3 on the host and 20 on the device's one engine, for two uploads at most ahead of
// the last that is done.
func TestATransform(t *testing.T) {
	//	reads      |0 1|1 2|2 3|3 4|
	//	copies     |1 3|4 6|          |24 26|    |44 46|
	//	Apply      |1   4|4   7|7    10|10   13|
	//	transforms      |4     24|24    44|44    64|64    84|
	//	Next       |0 1|1   4|4    7|7    10|10   13|
	r := run(t, waitmodel.Pipeline{
		Samples: 4, Batch: 1, Workers: 1, HostSlots: 4, Read: always(ms), Body: always(0),
		Device: &waitmodel.Device{Slots: 4, BatchesPerCopy: 1, Copy: always(2 * ms), Step: always(0),
			Transform: &waitmodel.Transform{Apply: always(3 * ms), Kernel: always(20 * ms)}},
	})
	require.Equal(t, []time.Duration{4 * ms, 7 * ms, 10 * ms, 13 * ms},
		times(r, func(b waitmodel.Times) time.Duration { return b.Delivered }))
	require.Equal(t, ms, r.WaitProducer)
	require.Equal(t, 12*ms, r.WaitDevice)
	require.Equal(t, []time.Duration{3 * ms, 6 * ms, 26 * ms, 46 * ms}, times(r, copied))
	require.Equal(t, []time.Duration{24 * ms, 44 * ms, 64 * ms, 84 * ms}, times(r, computed))
}

// Two rows a batch, and a short last one.
func TestRowsAreClaimedFromTheFirstBatchThatHasAny(t *testing.T) {
	//	worker 1  |0:0     10|1:1   13|
	//	worker 2  |0:1 4|1:0    12|2:0   20|
	//	Next      |        10|      13|  20|
	r := run(t, waitmodel.Pipeline{
		Samples: 5, Batch: 2, Workers: 2, HostSlots: 3, Read: each(10*ms, 4*ms, 8*ms, 3*ms, 8*ms), Body: always(0),
	})
	require.Equal(t, 10*ms, r.Times[0].Filled)
	require.Equal(t, 13*ms, r.Times[1].Filled)
	require.Equal(t, 20*ms, r.Times[2].Filled, "from 12 on")
	require.Equal(t, 20*ms, r.WaitProducer)
	require.Zero(t, r.WaitOrder)
	require.Equal(t, 33*ms, r.Busy)
}

// Several batches travel together where the consumer has another meanwhile.
func TestTwoBatchesACopy(t *testing.T) {
	//	reads    |0 1|1 2|2 3|3 4|4 5|5 6|
	//	copies       |1 0 3|3 1 5|      |11 2,3 15|     |21 4,5 25|
	//	loop     |0 1|0         11|1             21|2  31|3 41|4 51|5 61|
	r := run(t, waitmodel.Pipeline{
		Samples: 6, Batch: 1, Workers: 1, HostSlots: 4, Read: always(ms), Body: always(10 * ms),
		Device: &waitmodel.Device{Slots: 2, BatchesPerCopy: 2, Step: always(0),
			Copy: func(rows int) time.Duration { return time.Duration(rows) * 2 * ms }},
	})
	require.Equal(t, 4, r.Uploads)
	require.Equal(t, []time.Duration{3 * ms, 5 * ms, 15 * ms, 15 * ms, 25 * ms, 25 * ms}, times(r, copied))
	require.Equal(t, 61*ms, r.Ended)
	require.Equal(t, ms, r.Wait())
	require.Equal(t, (7+10)*ms, r.WaitSlot, "from 4, when the third upload is complete, and from 11, when the fourth is")
	require.Zero(t, r.WaitHostSlot)
}

func times(r *waitmodel.Result, of func(waitmodel.Times) time.Duration) (all []time.Duration) {
	for _, b := range r.Times {
		all = append(all, of(b))
	}
	return all
}

func copied(b waitmodel.Times) time.Duration   { return b.Copied }
func computed(b waitmodel.Times) time.Duration { return b.Computed }

// One step of 500 among others of 5, on two streams. The third batch comes when both
// streams have one each, and so to the first again. All others pass it by.
func TestASlowStepBesideFastOnes(t *testing.T) {
	steps := func(i int) time.Duration {
		if i == 0 {
			return 500 * ms
		}
		return 5 * ms
	}
	r := run(t, waitmodel.Pipeline{
		Samples: 100, Batch: 1, Workers: 1, HostSlots: 8, Read: always(0), Body: always(0),
		Device: &waitmodel.Device{Slots: 4, BatchesPerCopy: 1, Copy: always(0), Streams: 2, Engines: 2, Step: steps},
	})
	done := times(r, computed)
	require.Equal(t, []time.Duration{500 * ms, 5 * ms, 505 * ms, 10 * ms, 15 * ms}, done[:5])
	require.Equal(t, 490*ms, done[99])
	require.Equal(t, 480*ms, r.WaitDevice, "the last was delivered while the one before ran")
	require.Zero(t, r.WaitSlot, "the loop releases at once")

	// With a body the slot of the slow step is for a while the only one that is free. The copy
	// into it would hold up all copies behind it.
	//
	//	loop     |1 0       8|8 1 15|15 2 22|22 3
	//	steps 0  |1 0                                501|
	//	      1              |8 1 13|15 2 20|22 3 27|
	r = run(t, waitmodel.Pipeline{
		Samples: 60, Batch: 1, Workers: 1, HostSlots: 8, Read: always(ms), Body: always(7 * ms),
		Device: &waitmodel.Device{Slots: 4, BatchesPerCopy: 1, Copy: always(0), Streams: 2, Engines: 2, Step: steps},
	})
	done = times(r, computed)
	require.Equal(t, []time.Duration{501 * ms, 13 * ms, 20 * ms, 27 * ms, 34 * ms}, done[:5])
	require.Equal(t, time.Duration(1+59*7+5)*ms, done[59], "none waits for its step")
	require.Equal(t, ms, r.Wait())
}

// On one engine the streams take turns by when their kernels are ready.
func TestTwoStreamsOnOneEngine(t *testing.T) {
	r := run(t, waitmodel.Pipeline{
		Samples: 4, Batch: 1, Workers: 1, HostSlots: 4, Read: always(ms), Body: always(0),
		Device: &waitmodel.Device{Slots: 4, BatchesPerCopy: 1, Copy: always(ms), Streams: 2, Step: always(10 * ms)},
	})
	require.Equal(t, []time.Duration{12 * ms, 22 * ms, 32 * ms, 42 * ms}, times(r, computed))
}

// An epoch's end is no wait: the next one's first batch is read meanwhile.
func TestTheBorderOfTwoEpochs(t *testing.T) {
	//	reads  |0 10|10 14|14 24|24 28|     rows of 6 and 4, and one of 4
	//	loop        |10  |14    |24   |28
	r := run(t, waitmodel.Pipeline{
		Samples: 3, Batch: 2, Epochs: 2, Workers: 1, HostSlots: 2, Read: each(6*ms, 4*ms, 4*ms, 6*ms, 4*ms, 4*ms), Body: always(0),
	})
	require.Equal(t, []time.Duration{10 * ms, 14 * ms, 24 * ms, 28 * ms},
		times(r, func(b waitmodel.Times) time.Duration { return b.Delivered }))
	require.Equal(t, 28*ms, r.Ended)
	require.Equal(t, 28*ms, r.WaitProducer)
}
