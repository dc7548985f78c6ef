package onnx_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/leat-go/leat/frameworks/onnx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// BenchmarkRun runs a model of a few microseconds by turns through a Model, which makes its
// tensors anew for each batch, and by the binding alone with the same tensors each time.
// "added-ns" is what a Model adds to a batch.
func BenchmarkRun(b *testing.B) {
	needRuntime(b)
	const rows = 64
	pf := open(b, pictures(rows), rows, loader.Options{}, prefetch.Options{})
	m := load(b, classify, pf, onnx.Options{})
	session, err := ort.NewDynamicAdvancedSession(classify, []string{"pixels"}, []string{"scores", "class"}, nil)
	require.NoError(b, err)
	defer session.Destroy()
	in, err := ort.NewEmptyTensor[float32](ort.NewShape(rows, 2, 3))
	require.NoError(b, err)
	defer in.Destroy()
	scores, err := ort.NewEmptyTensor[float32](ort.NewShape(rows, 4))
	require.NoError(b, err)
	defer scores.Destroy()
	class, err := ort.NewEmptyTensor[int64](ort.NewShape(rows))
	require.NoError(b, err)
	defer class.Destroy()
	ins, outs := []ort.Value{in}, []ort.Value{scores, class}

	for batch, err := range pf.Batches(b.Context()) {
		require.NoError(b, err)
		var model, bare time.Duration
		b.ReportAllocs()
		for b.Loop() {
			began := time.Now()
			r, err := m.Run(b.Context(), batch)
			if err != nil {
				b.Fatal(err)
			}
			r.Release()
			turned := time.Now()
			if err := session.Run(ins, outs); err != nil {
				b.Fatal(err)
			}
			model, bare = model+turned.Sub(began), bare+time.Since(turned)
		}
		n := float64(b.N)
		b.ReportMetric(float64(model)/n, "model-ns")
		b.ReportMetric(float64(bare)/n, "bare-ns")
		b.ReportMetric(float64(model-bare)/n, "added-ns")
	}
}
