package nn

import (
	"math"

	"github.com/leat-go/leat/device"
)

// crossEntropy submits, for n rows of logits and one-hot targets, and the step's place:
//
//	losses[place]  = mean over the rows of -Σ target·log(softmax(logits))
//	correct[place] = number of rows whose largest logit is the target's
//	grad           = derivative of the loss with respect to the logits
//
// A row of targets that is all zero, which stands for no label, adds nothing.
func crossEntropy(s *device.Stream, losses, correct, grad, logits, targets device.View, n, classes int, c changing) error {
	l := device.Launch{Kernel: crossEntropyKernel}
	// One block: its reduction has a fixed order, and a batch is small. Eight threads
	// have a row.
	l.Grid, l.Block = [3]uint32{1, 1, 1}, [3]uint32{1024, 1, 1}
	at := c.memory.Size() > 0
	if at {
		l.Kernel = crossEntropyAtKernel
		losses.InOut(&l.Args)
		correct.InOut(&l.Args)
	} else {
		offset := int64(c.values.Place) * 4
		losses.Slice(offset, 4).Out(&l.Args)
		correct.Slice(offset, 4).Out(&l.Args)
	}
	grad.Out(&l.Args)
	logits.In(&l.Args)
	targets.In(&l.Args)
	l.Args.AddInt32(int32(n))
	l.Args.AddInt32(int32(classes))
	if at {
		c.memory.In(&l.Args)
	}
	return s.Launch(&l)
}

var crossEntropyKernel = &device.Kernel{Name: "cross_entropy", Module: module, Go: func(a *device.Args) {
	crossEntropyAll(a, 0)
}}

var crossEntropyAtKernel = &device.Kernel{Name: "cross_entropy_at", Module: module, Go: func(a *device.Args) {
	crossEntropyAll(a, device.Elements[Scalars](a, 7)[0].Place)
}}

func crossEntropyAll(a *device.Args, place uint32) {
	n, classes := int(a.Int32(5)), int(a.Int32(6))
	grad, logits, targets := device.Elements[float32](a, 2), device.Elements[float32](a, 3), device.Elements[float32](a, 4)
	var sum float64
	var correct uint32
	for i := range n {
		row := i * classes
		loss, hit := crossEntropyRow(grad[row:][:classes], logits[row:][:classes], targets[row:][:classes], n)
		sum += loss
		if hit {
			correct++
		}
	}
	device.Elements[float32](a, 0)[place] = float32(sum / float64(n))
	device.Elements[uint32](a, 1)[place] = correct
}

// crossEntropyRow is one row of crossEntropy; n scales the gradient.
func crossEntropyRow(grad, logits, target []float32, n int) (loss float64, hit bool) {
	best, label := 0, -1
	for j, x := range logits {
		if x > logits[best] {
			best = j
		}
		if target[j] != 0 {
			label = j
		}
	}
	if label < 0 {
		clear(grad)
		return 0, false
	}
	top, sum := float64(logits[best]), 0.0
	for j, x := range logits {
		e := math.Exp(float64(x) - top)
		grad[j] = float32(e)
		sum += e
	}
	scale := float32(1 / (sum * float64(n)))
	for j := range grad {
		grad[j] = float32(grad[j]*scale) - target[j]/float32(n)
	}
	return math.Log(sum) + top - float64(logits[label]), best == label
}
