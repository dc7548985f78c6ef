// Package leat is the documentation of the module. It has no code: a program imports what it
// uses of the packages below.
//
// Leat feeds a model. It reads samples, makes batches of them in pinned host memory, copies
// these to a GPU while the batch before is computed on, and says which batch may be used when.
// Without a GPU the same program runs on a CPU device.
//
//	loader      what a sample is, which samples make up a batch, where to resume
//	prefetch    the pipeline: batches on a device, or in host memory, in a range loop
//	device      streams, events and memory; device/auto opens the first GPU or the CPU
//
// Begin with loader.FromFunc or loader.FromSlice, which make a dataset of a function or of
// data in memory, and with the loop of package prefetch:
//
//	data := loader.FromSlice(images, fields, encode)
//	ld, err := loader.New(data, 256, loader.Options{Shuffle: true, Epochs: 10})
//	pf, err := prefetch.NewHost(ld, prefetch.Options{}) // prefetch.New for a device
//	defer pf.Close()
//	for batch, err := range pf.All(ctx) {
//		...
//	}
//
// Then, by what the data is:
//
//	loader/images       folders of pictures
//	loader/npy          NumPy's arrays; loader/safetensors, loader/idx (MNIST), loader/cifar likewise
//	loader/tokens       windows of files of tokens
//	loader/csv          rows of text by number; loader/jsonl and loader/lines likewise
//	loader/tar          samples in tar files; loader/tfrecord, loader/mds and loader/parquet likewise
//	loader/records      files of fixed-length binary records
//	loader/stream       text, and whatever else comes one after the other: JSONL, shuffle buffers, packing
//	loader/compose      datasets made of others: parts for training and validation, mixes, caches
//	loader/source       files by path, glob or fs.FS, and sources of your own
//	loader/statefile    where training stopped, in a file
//	loader/ranks        several processes: whose part of the data is whose
//
// And by what is done with the batches:
//
//	prefetch/chain      transforms on the device: normalise, crop, convert, one-hot
//	prefetch/group      several devices of one process
//	prefetch/capture    steps of many short kernels, replayed as graphs
//	device/meter        losses back from the device, without waiting for them
//	observe             who waited for whom, what to change, timelines; observe/ui shows it on a page
//	serve               requests of many goroutines, answered in batches
//	kernels             what transforms are made of, to call it in your own step
//	tensors             batches as tensors of gorgonia.org/tensor
//	frameworks          batches for GoMLX, Gorgonia and ONNX Runtime; modules of their own
//
// The program examples/hello is the smallest one, and the folder docs has a page for each
// subject, with programs that run.
package leat
