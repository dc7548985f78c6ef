// Package jsonl has the values of files with a JSON value in each line (JSON Lines, NDJSON) by
// number, in any order. Where the lines are is kept in an index: see package lines.
//
//	fields := []loader.Field{
//		{Name: "text", DType: dtype.Uint8, Shape: []int{4096}, Ragged: &loader.Ragged{}},
//		{Name: "label", DType: dtype.Int64},
//	}
//	data, err := jsonl.Open(ctx, files, fields, jsonl.Options{})
//	defer data.Close()
//
// Open takes the values of the keys that are called as the fields are. OpenFunc has a function
// of yours make a sample of a value, as for a text that a tokeniser cuts.
//
// Files that are compressed by gzip or zstd are read as a stream, and so may others be, without
// an index:
//
//	values := stream.JSON[document](lines.NewStream(files, lines.StreamOptions{}))
package jsonl
