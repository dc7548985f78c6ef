// Package chain makes a prefetch.Transform of operations on the fields of a batch:
// Normalize, Crop, Convert and OneHot, which are kernels of package kernels, and the
// user's own. They run on the device, between a batch's upload and its delivery.
//
//	transform, err := chain.New(dataset.Fields(),
//		chain.Crop("image", 28, 28, chain.CropOptions{Pad: 2, FlipProbability: 0.5}),
//		chain.Normalize("image", chain.NormalizeOptions{Layout: kernels.ToPlanar, Out: dtype.Float16}),
//		chain.OneHot("label", 10))
//
// The operations are done in their order, each on one field. A field that none of them
// changes is passed on as it is; neighbours among these take one copy in a full batch.
//
// A ragged field keeps its lengths through Convert, OneHot, a Normalize whose channels are
// not its first dimension, and every Op whose Output says so; the padding is computed as if
// it were a sample's own. An operation that can't be done to one is refused by New.
//
// New works out and checks every type and shape, before anything runs.
package chain
