package nn

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/leat-go/leat/device"
)

// shape of a product: m×k times k×n, after transposing.
type shape struct{ m, n, k int }

// transpose says which factor is stored transposed.
type transpose int

const (
	plain      transpose = iota // a is m×k, b is k×n
	transposeA                  // a is k×m
	transposeB                  // b is n×k
)

// matMul submits out = a·b, all row-major float32.
func matMul(s *device.Stream, out, a, b device.View, sh shape, t transpose) error {
	// Of the PTX version: a block computes so many rows and columns, and 32 groups of its
	// threads have a part of each sum. Larger pieces are for many outputs of short sums.
	const cols, lanes = 16, 512
	rows := 8
	if t == transposeA {
		rows = 16
	}
	l := device.Launch{Kernel: matMulKernels[t]}
	l.Grid = [3]uint32{blocks(sh.n, cols), blocks(sh.m, rows), 1}
	l.Block = [3]uint32{lanes, 1, 1}
	out.Out(&l.Args)
	a.In(&l.Args)
	b.In(&l.Args)
	l.Args.AddInt32(int32(sh.m))
	l.Args.AddInt32(int32(sh.n))
	l.Args.AddInt32(int32(sh.k))
	return s.Launch(&l)
}

var matMulKernels = [...]*device.Kernel{
	plain:      {Name: "matmul", Module: module, Go: func(a *device.Args) { gemm(a, plain) }},
	transposeA: {Name: "matmul_ta", Module: module, Go: func(a *device.Args) { gemm(a, transposeA) }},
	transposeB: {Name: "matmul_tb", Module: module, Go: func(a *device.Args) { gemm(a, transposeB) }},
}

func gemm(args *device.Args, t transpose) {
	m, n, k := int(args.Int32(3)), int(args.Int32(4)), int(args.Int32(5))
	a := matrix(args, 1, m, k, t == transposeA)
	b := matrix(args, 2, k, n, t == transposeB)
	c := matrix(args, 0, m, n, false)
	blas32.Gemm(transposed(t == transposeA), transposed(t == transposeB), 1, a, b, 0, c)
}

func matrix(a *device.Args, i, rows, cols int, transposed bool) blas32.General {
	if transposed {
		rows, cols = cols, rows
	}
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: device.Elements[float32](a, i)}
}

func transposed(yes bool) blas.Transpose {
	if yes {
		return blas.Trans
	}
	return blas.NoTrans
}
