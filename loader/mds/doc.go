// Package mds reads folders in MDS, the format of Mosaic's StreamingDataset: index.json and the
// shards that it names.
//
// Open gives the samples of plain shards by number. NewStream reads shards in order, which may be
// compressed by zstd or gzip. A sample's columns are written to fields of their names, or given to
// a function as they are stored.
//
// # The format
//
// A shard is the number of its samples, the offsets at which they begin and the last ends, each
// a uint32, a description in JSON, and the samples. A sample is the sizes of those of its columns
// that have no size of their own, each a uint32, and then all columns in the order of their names:
// streaming/base/format/mds/writer.py and encodings.py. Numbers are little-endian. Columns of the
// encoding pkl are pickles, which are programs, and are not read.
package mds
