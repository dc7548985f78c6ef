// Package kerneltest tests kernels that have a Go and a PTX version: opened by
// CPU, a Rig checks each launch's arguments against the PTX's own parameters, so
// that a wrong layout shows without a GPU; Agree runs the same work on a CPU
// device and on a GPU and compares the bytes; Rebuilt, Unfused and Inlined check the
// PTX.
package kerneltest
