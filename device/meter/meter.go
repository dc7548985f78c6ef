// Package meter brings small values back from a device while its work goes on.
package meter

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/leat-go/leat/device"
)

// A Meter brings values back from the device without waiting for them: the loss of some
// steps ago, while training goes on. T is what lies in device memory, a number or an
// array or a struct of numbers:
//
//	losses, err := meter.New[float32](dev)
//	scores, err := meter.New[struct{ Loss, Accuracy float32 }](dev)
//
// Any goroutine may push values to it, from any stream of its device, and read it. errors.Is
// finds device.ErrClosed in every error after Close.
type Meter[T any] struct{ ring *ring }

// New makes a meter, which holds 17 values in pinned memory. The caller owns it until
// Close, which comes before the device's.
func New[T any](dev *device.Device) (*Meter[T], error) {
	if dev == nil {
		return nil, errors.New("meter: New needs a device, not nil")
	}
	t := reflect.TypeFor[T]()
	if t.Size() == 0 || !numbers(t) {
		return nil, fmt.Errorf("meter: New of %v: want a number, or an array or a struct of numbers", t)
	}
	r, err := newRing(dev, int64(t.Size()))
	if err != nil {
		return nil, fmt.Errorf("meter: New of %v: %w", t, err)
	}
	return &Meter[T]{r}, nil
}

// numbers reports whether a T that the device has written means the same on the host.
func numbers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return numbers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !numbers(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Uintptr
}

// Push submits to s a copy of v, which has the size of a T, as it is when s gets there.
// It never waits: if 16 values are under way, the new one is left out. A value whose
// Push fails is never shown.
func (m *Meter[T]) Push(s *device.Stream, v device.View) error { return m.ring.push(s, v) }

// Latest returns the newest value that has arrived and the number of its Push. The
// Pushes are counted from 1, with those that were left out or failed, so that with one
// Push a step it is the step's number. Before the first value has arrived it is 0. Latest
// never waits and allocates nothing.
func (m *Meter[T]) Latest() (value T, number int64, err error) {
	number, err = m.ring.latest(unsafe.Slice((*byte)(unsafe.Pointer(&value)), unsafe.Sizeof(value)))
	return value, number, err
}

// Close waits for the values under way, for five seconds at most, and frees the meter. If
// that is not enough, or the device fails, the error says so, and the memory is freed when
// the device's work ends later. A second Close does nothing; one during another waits for
// it and returns its error.
func (m *Meter[T]) Close() error { return m.ring.close() }
