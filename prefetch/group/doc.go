// Package group has several devices of one process work on the batches of one loader.
//
// A Group is data-parallel: each device gets its part of every batch, and a step is made by
// all of them together.
//
//	streams := []*device.Stream{a, b}                          // one of each device
//	ld, err := loader.New(dataset, 256, loader.Options{Shuffle: true, Last: loader.Drop})
//	g, err := group.New(streams, ld, prefetch.Options{})       // 128 rows on each
//	defer g.Close()
//	for step, err := range g.All(ctx) {
//		if err != nil {
//			return err
//		}
//		for i, batch := range step.Batches {
//			models[i].Step(batch.Stream(), batch.Field("x").View)
//		}
//	}
//
// The batch size is that of a step, and not of a device: with one device more or fewer the
// steps have the same samples in the same order, and a State goes on with any number.
//
// # What it is made of
//
// Nothing here calls a device. A Group is one prefetch.Prefetcher for each device, whose
// loaders are the parts that loader.Loader.Divide makes: ranks of one program, except that
// they share its processors and its memory. So all that holds for a Prefetcher holds for
// each device: a slot is overwritten when its own device has read it, the waits are the
// devices', and a slow device holds up its own ring alone. A step is there when every device
// has its part; it takes as long as on the slowest device.
//
// # What is shared
//
// The workers are divided, evenly, and so is the budget for pinned memory. Plan says how.
//
// What a process with several devices runs out of first is the bandwidth of its one memory:
// a byte that is brought to a device is read once from where the dataset has it, written to
// a host slot, and read by the device's copy. The last of these costs memory nothing while
// the slot is still in the processor's cache, and therefore the default for the host slots is
// 128 MiB over all devices together, and not for each. Beyond that the bytes decide: uint8
// in place of float32, with a Transform that converts on the device, is a quarter of all
// three.
//
// # When a device fails
//
// The steps in hand stay valid on the devices that have not failed, the range or Next ends
// with a *DeviceError that names the device, and the place is behind the last step that was
// delivered to all of them. A gradient that lacks a part is no step, so that nobody goes on
// without it.
//
// # Life
//
// A Group has no goroutine of its own, apart from those in which Close closes the devices'
// pipelines side by side, and which it joins.
package group
