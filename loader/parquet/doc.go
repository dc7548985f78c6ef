// Package parquet reads Parquet files, by way of Apache Arrow's own reader for Go.
//
// Open reads the descriptions at the ends of the files, and gives rows by number; NewStream gives
// them in order. A Row writes its columns to fields: numbers, strings, lists, lists of lists. For what
// else there is it lends the arrays of Arrow.
//
// # Row groups
//
// A Parquet file is read by its row groups, of thousands of rows: to have one row, all of its group
// must be decoded. A Table keeps the groups that were used last, up to Options.CacheBytes. Where
// a table is larger than that, rows in random order decode a group for nearly each of them: shuffle by
// a stream with a buffer (stream.Shuffle), or write smaller groups.
//
// # Module
//
// The package is a module of its own, because Arrow's reader adds some 30 MB to a program.
package parquet
