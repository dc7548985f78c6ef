// Package unpack reads files from front to back that may be compressed, which their first
// bytes show: by gzip, zstd or zlib.
package unpack
