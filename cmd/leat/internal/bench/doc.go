// Package bench measures whether the library reaches its targets on the device at
// hand. Each figure is the median of several runs, set against what the same run
// measured of the machine: the bus's own rate, the copy's own time, another way of
// pinning. So a figure means the same on a fast machine and on a slow one.
//
// Everything goes through the public API, and contents are verified by checksums
// that the device computes, in an epoch of its own before the timed ones.
package bench
