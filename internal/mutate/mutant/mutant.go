// Package mutant is what mutated source calls to ask whether one of its changes is
// switched on. Only source that internal/mutate has written imports it.
//
// LEAT_MUTANT in the environment is the number of the change that is switched on.
// LEAT_MUTANT_SITES is a file: the number of each place that the program passes is
// appended to it, once, and every change is off. With neither, On is one read of a
// plain variable that is set before the program's own packages are initialised, so
// that neither the race detector nor a synctest bubble notices it.
package mutant

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

// Most bounds the numbers of changes.
const Most = 1 << 15

const recording = -1

var (
	active = start()
	sites  *os.File
	passed [Most]atomic.Bool
)

func start() int {
	if name := os.Getenv("LEAT_MUTANT_SITES"); name != "" {
		var err error
		if sites, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err != nil {
			panic(err)
		}
		return recording
	}
	text := os.Getenv("LEAT_MUTANT")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= Most {
		panic(fmt.Sprintf("LEAT_MUTANT is %q, want a number from 0 to %d", text, Most-1))
	}
	return n
}

// On reports whether change n, 1 or more, is switched on.
func On(n int) bool { return active != 0 && on(n) }

func on(n int) bool {
	if active != recording {
		return active == n
	}
	if !passed[n].Swap(true) {
		// Without a lock: the file appends each write as a whole.
		line := append(strconv.AppendInt(make([]byte, 0, 8), int64(n), 10), '\n')
		if _, err := sites.Write(line); err != nil {
			panic(err)
		}
	}
	return false
}

// Without is v, or its type's zero value where change n is switched on: a nil channel
// is never ready.
func Without[T any](n int, v T) T {
	if On(n) {
		var none T
		return none
	}
	return v
}
