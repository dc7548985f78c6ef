//go:build !race

package onnx_test

const race = false
