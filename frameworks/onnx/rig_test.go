package onnx_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/onnx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// uninitialized is what New returns before ONNX Runtime is started.
var uninitialized error

// TestMain starts ONNX Runtime if LEAT_ONNXRUNTIME names its library. Without one the tests
// that need it are skipped, or fail with LEAT_ONNX=required.
func TestMain(m *testing.M) {
	_, uninitialized = onnx.New(classify, nil, onnx.Options{})
	if path := os.Getenv("LEAT_ONNXRUNTIME"); path != "" {
		ort.SetSharedLibraryPath(path)
		if err := ort.InitializeEnvironment(); err != nil {
			fmt.Fprintln(os.Stderr, "LEAT_ONNXRUNTIME:", err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if ort.IsInitialized() {
		if err := ort.DestroyEnvironment(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func needRuntime(t testing.TB) {
	t.Helper()
	if ort.IsInitialized() {
		return
	}
	const how = "LEAT_ONNXRUNTIME names no library of ONNX Runtime: testdata/fetch.sh fetches one and prints its path"
	if os.Getenv("LEAT_ONNX") == "required" {
		t.Fatal(how)
	}
	t.Skip(how)
}

const classify, fixed = "testdata/classify.onnx", "testdata/fixed.onnx"

// pictures are n samples that are told by the index.
func pictures(n int) loader.Dataset {
	fields := []loader.Field{{Name: "pixels", DType: dtype.Float32, Shape: []int{2, 3}}}
	return loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "pixels", pixels(i)...)
	})
}

func pixels(i int) []float32 {
	p := make([]float32, 6)
	for j := range p {
		p[j] = float32((i*5+j*3)%13) - 6
	}
	return p
}

// scores are what classify.onnx makes of picture i: pixels·w + b with w[k, j] = k-j, b[j] = j/4.
func scores(i int) (s []float32, class int64) {
	s = make([]float32, 4)
	for j := range s {
		s[j] = float32(j) / 4
		for k, p := range pixels(i) {
			s[j] += p * float32(k-j)
		}
		if s[j] > s[class] {
			class = int64(j)
		}
	}
	return s, class
}

func open(t testing.TB, ds loader.Dataset, batch int, lo loader.Options, po prefetch.Options) *prefetch.Prefetcher {
	t.Helper()
	ld, err := loader.New(ds, batch, lo)
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, po)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pf.Close()) })
	return pf
}

func load(t testing.TB, path string, pf *prefetch.Prefetcher, o onnx.Options) *onnx.Model {
	t.Helper()
	m, err := onnx.New(path, pf, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// requireScores checks a result of classify.onnx for rows of pictures from first on.
func requireScores(t testing.TB, r onnx.Result, first, rows int) {
	t.Helper()
	got, err := prefetch.Column[float32](r, "scores")
	require.NoError(t, err)
	classes, err := prefetch.Column[int64](r, "class")
	require.NoError(t, err)
	require.Len(t, got, 4*rows)
	require.Len(t, classes, rows)
	for i := range rows {
		want, class := scores(first + i)
		require.Equal(t, want, got[4*i:][:4])
		require.Equal(t, class, classes[i])
	}
}
