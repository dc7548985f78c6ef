// Package records has the samples of files in which each takes equally many bytes: a
// record is the fields of a sample one behind the other, and a file is records one behind
// the other. CIFAR-10 is such files, and so is what a program writes with encoding/binary
// for its own use.
//
//	files, err := source.Glob("cifar/data_batch_{1..5}.bin")
//	data, err := records.Open(ctx, files, []loader.Field{
//		{Name: "label", DType: dtype.Uint8},
//		{Name: "image", DType: dtype.Uint8, Shape: []int{3, 32, 32}},
//	}, records.Options{})
//	defer data.Close()
//
// Elements of more than one byte are little-endian, as they are in a batch. Any number of
// goroutines read records in any order, and nothing is held in memory.
package records
