// Package tokens has windows of texts that were made into tokens and stored as one long array
// of integers, as language models are trained on.
//
//	files, err := source.Glob("corpus/train-*.bin")
//	data, err := tokens.Open(ctx, files, 1024, tokens.Options{DType: dtype.Uint16})
//	defer data.Close()
//
// A sample has the field "tokens" of length+1 tokens: the first length of them go into a model,
// and the last length are what it should say. The next sample begins length tokens further on,
// so each token of a file is predicted once; what is left at a file's end and fills no window
// is left out. A window doesn't reach from one file into the next, but it does from one
// document into the next: where they end a tokeniser has put a token of its own.
//
// Any number of goroutines read samples in any order, and nothing is held in memory.
//
// # Formats
//
// What a file is shows how it begins:
//
//	llm.c            a header of 1024 bytes with the number of tokens: version 1 has uint16,
//	                 version 7 uint32 (https://github.com/karpathy/llm.c, dev/data)
//	Megatron-LM      a .bin file without a header, and an .idx file of the same name that says
//	                 the type (megatron/core/datasets/indexed_dataset.py)
//	NumPy            a .npy file of one dimension
//	all else         nothing but tokens, as nanoGPT and OLMo have them (also in files that are
//	                 called .npy): Options.DType says of which type
//
// Tokens are little-endian in all of them, and so they are in a batch.
package tokens
