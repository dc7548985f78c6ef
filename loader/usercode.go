package loader

import (
	"fmt"
	"strings"
)

// userCode is where a stack, of runtime/debug.Stack or runtime.Stack, is in the user's code,
// as the end of a message in one line; empty if it does not tell.
func userCode(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") { // what is above has recovered from it
			lines = lines[i+1:]
			break
		}
	}
	for i, line := range lines[:max(0, len(lines)-1)] {
		if strings.HasPrefix(line, "created by ") {
			break
		}
		file, ok := strings.CutPrefix(lines[i+1], "\t")
		if !ok || passedOver(line) {
			continue
		}
		file, _, _ = strings.Cut(file, " +0x")
		return fmt.Sprintf(" (at %s)", file)
	}
	return ""
}

// passedOver reports whether a function is not the user's: a wait, or the way into
// their code.
func passedOver(function string) bool {
	if strings.HasPrefix(function, "\t") {
		return true
	}
	for _, pkg := range [...]string{"panic(", "runtime", "internal/", "sync", "time.", "syscall.", "testing.",
		"github.com/leat-go/leat/internal/", "github.com/leat-go/leat/loader.", "github.com/leat-go/leat/prefetch."} {
		if strings.HasPrefix(function, pkg) {
			return true
		}
	}
	return false
}
