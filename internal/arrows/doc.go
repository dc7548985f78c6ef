// Package arrows holds the tests of what the folders promise: that imports point one way,
// and that the types of package prefetch stay small.
package arrows
