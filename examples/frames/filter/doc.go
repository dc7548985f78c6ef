// Package filter is what the device does to a frame of a film: a Gaussian blur,
// separable and so done along rows and then along columns, a number of times; and
// the step before an encoder, gamma and YCbCr.
//
// Every operation is a kernel with a Go and a PTX version. All arithmetic is
// that of integers, so both give the same bytes, in whatever order and beside
// whatever other work they run.
package filter

//go:generate ./generate.sh
