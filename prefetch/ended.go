package prefetch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leat-go/leat/device"
)

// An endedError is what a device's end leaves to say, in one sentence: once a device
// has failed or is closed every call says so, and only the first is news.
type endedError struct {
	text string
	err  error
}

func (e *endedError) Error() string { return e.text }

func (e *endedError) Unwrap() error { return e.err }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func deviceEnded(err error) bool {
	return errors.Is(err, device.ErrFault) || errors.Is(err, device.ErrClosed)
}

// ended is an error of freeing, or one sentence instead where it tells of the device's
// end, as every call then did. told says that the user knows of the fault.
func ended(err error, what string, told bool) error {
	name := "the device"
	var of *device.Error
	if errors.As(err, &of) {
		name = of.Device
	}
	switch {
	case errors.Is(err, device.ErrFault):
		cause := err
		if of != nil && errors.Is(of, device.ErrFault) {
			cause = of.Err
		}
		text := cause.Error()
		if told {
			text = firstLine(text)
		}
		return &endedError{fmt.Sprintf("%s has failed, and what was on it stays there: %s", name, text), err}
	case errors.Is(err, device.ErrClosed):
		return &endedError{fmt.Sprintf("%s was closed first, and what was on it stays there: close a %s before its device", name, what), err}
	}
	return err
}

// closeError is what Close returns of the error of stopping and of what was left.
func closeError(n *notes, stopped error, left *CloseError) error {
	if deviceEnded(stopped) {
		left.Err, stopped = errors.Join(stopped, left.Err), nil
	}
	if deviceEnded(left.Err) {
		left = &CloseError{Leased: left.Leased, Err: ended(left.Err, "Prefetcher", n.fault())}
	}
	return errors.Join(stopped, left)
}
