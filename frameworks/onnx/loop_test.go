package onnx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/frameworks/onnx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// classifyAll prints the class of each picture. The program has initialized ONNX Runtime.
func classifyAll(ctx context.Context, path string, pictures loader.Dataset) error {
	ld, err := loader.New(pictures, 32, loader.Options{Epochs: 1})
	if err != nil {
		return err
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		return err
	}
	defer pf.Close()
	model, err := onnx.New(path, pf, onnx.Options{})
	if err != nil {
		return err
	}
	defer model.Close()
	for result, err := range model.Map(ctx, pf.Batches(ctx)) {
		if err != nil {
			return err
		}
		classes, err := prefetch.Column[int64](result, "class")
		if err != nil {
			return err
		}
		fmt.Println(result.Position().First, classes)
	}
	return nil
}

func TestTheLoop(t *testing.T) {
	needRuntime(t)
	require.NoError(t, classifyAll(t.Context(), classify, pictures(50)))
}
