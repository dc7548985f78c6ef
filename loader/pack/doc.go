// Package pack writes samples into shards: few large files, which are read faster than many
// small ones, in an order that was shuffled once for all.
//
//	index, err := pack.Write(ctx, "corpus", len(texts), 1000,
//		func(ctx context.Context, i int) ([]uint32, error) { return tokenize(texts[i]) },
//		pack.Tokens(dtype.Uint16, 50257), pack.Options{Shuffle: true, Seed: 1})
//
// Each shard has the samples of its places in the order, which depends on the seed and their
// number alone, so its bytes are the same for any number of workers. What is made of a sample is
// the function's: a picture that is scaled, a text in tokens.
//
// # Killed, and called again
//
// The shards are built in a folder beside the one that was asked for, called as that with
// ".packing" behind it. It gets its name when all are whole: so there is never a folder in
// part. Write called again after its process was killed keeps the shards whose checksums are
// right, each in its place, and writes the others; what comes out is what an uninterrupted call
// writes, to the byte. Where the folder is whole already, nothing is touched. On Linux, and
// where else files can be locked, a second process is refused while one is writing.
package pack
