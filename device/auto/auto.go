// Package auto opens a device by its name, so that a program moves from a laptop to a GPU
// without a change, or by a flag.
package auto

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/cuda"
)

// UnknownError says that there is no device of that name, what there is, and why a
// GPU can't be used, if so. errors.Is finds device.ErrUnavailable in it.
type UnknownError struct {
	// Name was asked for.
	Name string
	// Available are the names that Open takes on this machine, beside "".
	Available []string
	// NoGPU is why no GPU can be used, nil if there is one.
	NoGPU error
}

func (e *UnknownError) Error() string {
	s := fmt.Sprintf("auto: no device %q, have: %s", e.Name, strings.Join(e.Available, ", "))
	switch {
	case e.NoGPU == nil:
		return s
	case isGPU(e.Name): // whoever asked for one wants to know where a driver was looked for
		return fmt.Sprintf("%s (no GPU: %v)", s, e.NoGPU)
	}
	return fmt.Sprintf("%s (no GPU: %s)", s, short(e.NoGPU))
}

// isGPU reports whether only a GPU can be meant by name.
func isGPU(name string) bool {
	for _, prefix := range []string{"cuda", "GPU-", "MIG-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// short is why there is no GPU, without the list of places where no driver is.
func short(err error) string {
	if errors.Is(err, cuda.ErrNoDriver) {
		return cuda.ErrNoDriver.Error()
	}
	return err.Error()
}

// Unwrap returns device.ErrUnavailable and the reason why there is no GPU.
func (e *UnknownError) Unwrap() []error {
	if e.NoGPU == nil {
		return []error{device.ErrUnavailable}
	}
	return []error{device.ErrUnavailable, e.NoGPU}
}

// Open opens the device of that name; the caller owns it until Close. The device's Notes
// say which one it is and why.
//
//	""           the first GPU if there is one, else the CPU device
//	"cpu"        the CPU device
//	"cuda"       the first GPU
//	"cuda:1"     the second
//	"GPU-8a3f…"  the GPU with that UUID
//
// If a GPU is asked for by name and can't be opened, that is an error. For "" the CPU
// device takes its place, and the Notes say why.
func Open(name string) (*device.Device, error) {
	switch {
	case name == "":
		return first()
	case name == "cpu":
		return noted(cpu.Open(cpu.Options{}))("cpu was asked for")
	case strings.HasPrefix(name, "GPU-") || strings.HasPrefix(name, "MIG-"):
		return gpu(name, cuda.Options{UUID: name})
	}
	kind, number, numbered := strings.Cut(name, ":")
	index, err := 0, error(nil)
	if numbered {
		index, err = strconv.Atoi(number)
	}
	if kind != "cuda" || err != nil || index < 0 {
		return nil, unknown(name, nil)
	}
	return gpu(name, cuda.Options{Index: index})
}

func first() (*device.Device, error) {
	dev, err := cuda.Open(cuda.Options{})
	if err == nil {
		dev.Note("no device was named: this is the first GPU")
		return dev, nil
	}
	return noted(cpu.Open(cpu.Options{}))("no device was named, and no GPU can be used: " + short(err))
}

func gpu(name string, o cuda.Options) (*device.Device, error) {
	dev, err := cuda.Open(o)
	if errors.Is(err, device.ErrUnavailable) {
		return nil, unknown(name, err)
	}
	return noted(dev, err)(name + " was asked for")
}

// noted adds a sentence to a device that was opened.
func noted(dev *device.Device, err error) func(string) (*device.Device, error) {
	return func(sentence string) (*device.Device, error) {
		if err != nil {
			return nil, err
		}
		dev.Note(sentence)
		return dev, nil
	}
}

func unknown(name string, reason error) error {
	e := &UnknownError{Name: name, Available: []string{"cpu"}, NoGPU: reason}
	gpus, err := cuda.List()
	for _, p := range gpus {
		e.Available = append(e.Available, fmt.Sprintf("cuda:%d (%s, %s)", p.Index, p.Description, p.UUID))
	}
	if e.NoGPU == nil && err != nil {
		e.NoGPU = err
	}
	return e
}
