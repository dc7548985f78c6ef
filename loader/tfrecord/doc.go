// Package tfrecord reads TFRecord files, TensorFlow's format for records of any length, and
// the tf.train.Example messages that most of them hold.
//
// Open looks where the records are, and gives them by number. NewStream reads files from front
// to back, which may be compressed by gzip, zlib or zstd. Both give bytes, whatever these are;
// Records.Examples makes a dataset of Examples, in which each field is the feature of its name,
// and an Example parses one.
//
// # The format
//
// A record is its length (8 bytes, little-endian), a checksum of these, its bytes, and a checksum of
// them. The checksums are CRC-32C, rotated by 15 bits with a constant added, as
// tensorflow/core/lib/hash/crc32c.h has it. A length whose checksum is wrong ends a file, since nobody
// knows where the next record begins; bytes whose checksum is wrong cost their record only. An
// Example is a message of protocol buffers: tensorflow/core/example/example.proto.
//
// Files have no sign of how they are compressed. One is plain if the checksum of its first length is
// right.
package tfrecord
