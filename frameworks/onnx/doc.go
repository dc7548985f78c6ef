// Package onnx runs ONNX models on the batches of a pipeline, by ONNX Runtime and its Go
// binding github.com/yalue/onnxruntime_go. It needs cgo, and the library of ONNX Runtime
// when the program runs.
//
//	ort.SetSharedLibraryPath("libonnxruntime.so")
//	err := ort.InitializeEnvironment()
//	pf, err := prefetch.NewHost(ld, prefetch.Options{})
//	model, err := onnx.New("resnet.onnx", pf, onnx.Options{})
//	defer model.Close()
//	for result, err := range model.Map(ctx, pf.Batches(ctx)) {
//		if err != nil {
//			return err
//		}
//		scores, err := prefetch.Column[float32](result, "scores")
//		…
//	}
//
// Inputs are the batch's own memory, and outputs are written to pinned memory of the Model:
// nothing is copied on the host. A batch's memory is pinned for Go's garbage collector, and
// is not released, until the call of ONNX Runtime has returned, whatever that returns; no
// tensor refers to it afterwards.
//
// # Versions
//
// The binding wants an ONNX Runtime at least as new as the headers that it was made with:
// v1.35.0 of the binding goes with 1.29 of the library.
//
// # GPUs
//
// With an execution provider for a GPU (Options.Session) ONNX Runtime copies the inputs
// to the device itself, and the outputs back. The binding makes tensors of host memory only:
// it has no way to tell ONNX Runtime of device memory, so that a pipeline's device batches
// can't be inputs. Options.Device has the outputs in memory that a GPU copies from at full
// speed.
package onnx
