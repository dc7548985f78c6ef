// Package waits says what a pipeline's consumer waited for: producers, the order of batches,
// the device, or its own release of what it holds. internal/waitmodel is a simulation of a
// whole pipeline that the figures are compared with.
package waits
