package invariants

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
)

// A Watch reports its owner if the garbage collector takes it before Closed. It only
// reports: what the owner owns may be in use by a device, and nothing is freed.
type Watch struct{ cleanup runtime.Cleanup }

// leaked gets each report; nil means standard error.
var leaked atomic.Pointer[func(report string)]

// OnLeak sends reports to f, from the garbage collector's goroutine, until restore.
func OnLeak(f func(report string)) (restore func()) {
	old := leaked.Swap(&f)
	return func() { leaked.Store(old) }
}

// WatchClose watches owner in a build with the tag invariants, and does nothing in
// others. The report names the caller skip frames up, and ends with what describe,
// which must not refer to owner, then says.
func WatchClose[T any](owner *T, what string, describe func() string, skip int) Watch {
	if !Enabled {
		return Watch{}
	}
	place := "an unknown place"
	if _, file, line, ok := runtime.Caller(skip + 1); ok {
		place = fmt.Sprintf("%s:%d", file, line)
	}
	return Watch{runtime.AddCleanup(owner, func(describe func() string) {
		report(fmt.Sprintf("%s made at %s was never closed%s", what, place, describe()))
	}, describe)}
}

func report(text string) {
	if f := leaked.Load(); f != nil {
		(*f)(text)
		return
	}
	fmt.Fprintln(os.Stderr, text)
}

// Closed ends the watch.
func (w Watch) Closed() { w.cleanup.Stop() }
