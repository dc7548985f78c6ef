// Package nn is a small fully connected network, trained by Adam, written against
// streams: every operation is a kernel launched on a *device.Stream, so the same
// training code runs on each device that Leat knows.
//
// Step submits one training step and returns; nobody waits. Parameters,
// activations, gradients and the losses themselves stay in device memory: Report brings
// the losses of an epoch back at its end, and a meter.Meter reads Loss meanwhile.
//
// All sums have a fixed order: on one kind of device, the same seed and the same
// batches give the same losses to the last bit.
package nn

//go:generate ./generate.sh
