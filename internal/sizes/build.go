package main

import (
	"bufio"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hello is the program that is built, in a few forms.
const hello = "github.com/leat-go/leat/examples/hello"

// form is how hello is built.
type form struct {
	name string
	tags string // of go build
	with string // a package that it imports too
}

var forms = []form{
	{name: "loader, prefetch, device/auto"},
	{name: "the same, without CUDA", tags: "leat_nocuda"},
	{name: "and package tensors", with: "github.com/leat-go/leat/tensors"},
}

// binary is what came out.
type binary struct {
	bytes   int64
	modules []string // that it has code of, beside Leat
	inits   int      // packages that had something to initialise when it ran
}

// build builds hello as users do who want it small, runs it, and leaves nothing behind.
func build(f form) (b binary, err error) {
	folder, err := os.MkdirTemp("", "leat-sizes-")
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	overlay, err := importing(f.with, folder)
	if err != nil {
		return b, err
	}
	path := filepath.Join(folder, "hello.exe")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-tags", f.tags, "-overlay", overlay, "-o", path, hello)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return b, fmt.Errorf("building %s: %w\n%s", f.name, err, out)
	}
	stat, err := os.Stat(path)
	if err != nil {
		return b, err
	}
	b.bytes = stat.Size()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return b, err
	}
	for _, dep := range info.Deps {
		b.modules = append(b.modules, dep.Path)
	}
	b.inits, err = inits(path)
	return b, err
}

// importing writes an overlay of hello that imports a package more, if one is named.
func importing(pkg, folder string) (overlay string, err error) {
	replace := map[string]string{}
	if pkg != "" {
		out, err := exec.Command("go", "list", "-f", "{{.Dir}}", hello).Output()
		if err != nil {
			return "", err
		}
		file := filepath.Join(folder, "more.go")
		if err := os.WriteFile(file, fmt.Appendf(nil, "package main\n\nimport _ %q\n", pkg), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(strings.TrimSpace(string(out)), "more.go")] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// inits runs the program and counts the lines "init …" that the runtime writes.
func inits(path string) (n int, err error) {
	var stderr bytes.Buffer
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	cmd.Stdout, cmd.Stderr = io.Discard, &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("running %s: %w\n%s", hello, err, &stderr)
	}
	lines := bufio.NewScanner(&stderr)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "init ") {
			n++
		}
	}
	return n, lines.Err()
}
