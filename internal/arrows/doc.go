// Package arrows holds the test that imports point one way: the folders are the
// architecture.
package arrows
