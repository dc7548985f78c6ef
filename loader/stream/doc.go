// Package stream makes streams for loader.NewStream: data without random access, cut into
// shards, that goes through a chain of operators and can be gone on with from any place.
//
//	lines := stream.Lines(files, stream.LinesOptions{})
//	texts := stream.Map(lines, parse)
//	texts = stream.Filter(texts, longEnough)
//	texts = stream.Shuffle(texts, 10_000)
//	ld, err := loader.NewStream(stream.Encode(texts, fields, encode), 256, loader.Options{})
//
// An operator is a function from a Stream to a Stream. It works on each shard by itself, does
// nothing until a shard is opened, and closes what it has opened. Operators that put several
// streams together take as many shards of each. A mistake in an argument is kept in the
// Stream and comes out at the end, all of them at once: see Stream.Err.
//
// # What may be relied on
//
// What a shard gives in a pass is a function of the seed, the epoch, the shard and the
// number of shards, and of nothing else: not of timing, goroutines, ranks or the place at
// which reading began. So all functions that users give must be functions of their
// arguments too.
//
// The mark of a chain holds the place in each source that is read, and a few numbers for
// each operator, never values: what an operator holds back is read again from a place
// before, a number of values in proportion to its buffer. Where a reader has no marks
// (loader.ErrNoMark), nor has the chain; then the loader reads the shard again from its
// beginning. A mark that doesn't fit is a *MarkError. That a chain was changed since is noticed
// by its fingerprint, which holds its sources, operators and their numbers, but not functions:
// a State is refused by another fingerprint.
//
// Values go from hand to hand: an operator, or a function of the user's, that has got a value
// may keep it and change it, and whoever gave it away may not. A value that owns something
// which must be closed doesn't belong in a stream: operators leave values out and drop what
// they hold. Open it where the value is encoded.
//
// # Failures
//
// A failure costs one record, and the one behind it is the next; or the reader is broken and
// returns the error for ever. A panic in a function of the user's is the failure of the value
// that it was called for. An operator that holds values back passes a failure on at once. Behind
// one there is a mark where the reader below has one. loader.Flush is passed on at once too, and is not part of any
// mark.
package stream
