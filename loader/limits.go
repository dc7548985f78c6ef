package loader

import (
	"math"
	"reflect"
)

// The largest numbers that are taken. They are beyond all use, and so far from the
// ends of their types that no sum or product of them wraps round.
const (
	maxBatch   = math.MaxInt32 // rows of a global batch
	maxSamples = 1 << 62       // positions of an epoch
	maxEpoch   = 1 << 30
	maxWorkers = 1 << 16
	maxShards  = 1 << 16                           // of a Stream: each has a goroutine
	maxSlots   = 1 << 20                           // of a Heap
	maxHeap    = min(1<<46, math.MaxInt/2) - Align // bytes of one
)

// isNil reports whether v is nil or holds a nil pointer, function or channel: in
// place of a user's type, which a constructor returned beside an error that nobody
// looked at. A nil slice or map is as good as an empty one.
func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Chan:
		return r.IsNil()
	default:
		return false
	}
}

// required is an *OptionError if v is nil.
func required(option string, v any, want string) error {
	if !isNil(v) {
		return nil
	}
	var value any
	if v != nil {
		value = "a nil " + reflect.TypeOf(v).String()
	}
	return &OptionError{Option: option, Value: value, Want: want}
}

// incomplete reports the functions that a Dataset or an Iterable of this package was
// not given: FromSlice and its like return no error.
func incomplete(data any) error {
	switch d := data.(type) {
	case interface{ missing() error }:
		return d.missing()
	case Stream:
		if d, ok := d.(interface{ Err() error }); ok {
			return d.Err()
		}
	}
	return nil
}
