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
// A Pool shares the work: each device takes whole batches, the faster ones more of them, and
// the results come to the host.
//
//	p, err := group.NewPool(streams, ld, prefetch.Options{})
//	defer p.Close()
//	for result, err := range p.Map(ctx, output, work) {
//		…
//	}
//
// # What it is made of
//
// Nothing here calls a device. There is one prefetch.Prefetcher for each device. Those of a
// Group have the parts that loader.Loader.Divide makes for their loaders: ranks of one program,
// except that they share its processors and its memory. Those of a Pool have the loaders that
// loader.Loader.Deal makes, which ask for each batch which one it is to be. So all that holds
// for a Prefetcher holds for each device: a slot is overwritten when its own device has read
// it, the waits are the devices', and a slow device holds up its own ring alone. A step of a
// Group is there when every device has its part; it takes as long as on the slowest device.
//
// # Who takes which batch
//
// A Pool knows no speeds beforehand. What a step takes on a device follows from when its
// results come, and counts from the next step on. A device that has room for another step gets
// the one whose turn it will be when the device is done with it, by these times: two devices of
// which one is three times as fast take steps 0 1 2 and 3, and not 0 and 1 to begin with. If
// the others will have done all that are left by then it gets none. So the results come in
// about their order without being waited for, and all devices end together: within a step of
// the slowest of them. shares.go has the rule.
//
// A device has no more steps in hand than it needs to be busy, since those are late if it
// becomes slow, or has to be replaced. In order, results that are before their turn are copied,
// as many as Output.Slots for each device, so that a device that has misjudged its time goes on.
//
// # Streams
//
// A loader.Stream is refused by New and by NewPool, with a *loader.OptionError. The place in it
// is a mark of each shard, of which a device's pipeline knows those of its own shards only; a
// Group would have to put together at every step what the others know, to have a State that is
// none of theirs, and to take back the batches of a step that not all of them have. And which
// sample comes next is not known before it is read, so that a Pool has nothing to deal. In a
// stream a device is a rank: a Prefetcher for each, whose loaders have Options.Shard and
// Options.Steps, and loader.MergeStates where a State is saved; see the example.
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
// A Group ends: the steps in hand stay valid on the devices that have not failed, the range or
// Next ends with a *DeviceError that names the device, and the place is behind the last step
// that was delivered to all of them. A gradient that lacks a part is no step, so that nobody
// goes on without it.
//
// A Pool goes on with the others, and they do again what the device had not given: every result
// comes once. Lost tells of it.
//
// # Life
//
// A Group has no goroutine of its own. A Pool has one for each device during a Map, which ends
// with it. Close closes the devices' pipelines side by side, on goroutines that it joins.
package group
