// Package idx reads IDX files, the format of MNIST and its kin: a big-endian
// header of element type and dimensions, and the elements, usually gzipped.
package idx
