//go:build !linux

package whole

import (
	"errors"
	"os"
)

// machine is empty: nothing tells which files' locks could be asked for.
func machine() string { return "" }

func lock(*os.File) (free bool, err error) { return false, errors.ErrUnsupported }
