package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed mutant/mutant.go
var runtimeSource []byte

// A Kit is a folder of test binaries with their mutants in them, and this program: all
// that it takes to run them on another machine, beside a copy of the source tree.
type Kit struct {
	Mutants  []*Mutant
	Partial  bool // some files' only
	Skipped  map[string]int
	Packages []TestPackage
}

// A TestPackage is a package whose tests judge mutants.
type TestPackage struct {
	Package string // its folder, from the module's root
	Binary  string // in the kit
	Race    string // the same with the race detector, "" without
	Flags   []string
}

const manifest = "kit.json"

// build writes a kit with the mutants of packages.
func build(kit string, o *options, packages []string) error {
	only, race := split(o.files), o.race && canRace()
	m, sources, err := load(o.root, o.tags, packages)
	if err != nil {
		return err
	}
	c, err := newSchema(m, sources, only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(kit, 0o777); err != nil {
		return err
	}
	overlay, clean, err := c.overlay(m)
	if err != nil {
		return err
	}
	defer clean()
	k := Kit{Mutants: c.mutants, Skipped: c.skipped, Partial: len(only) > 0}
	judges, err := judges(m, sources, split(o.tests))
	if err != nil {
		return err
	}
	race = race && slices.ContainsFunc(c.mutants, func(m *Mutant) bool { return m.Race })
	for _, pkg := range judges {
		t := TestPackage{Package: pkg, Binary: strings.ReplaceAll(pkg, "/", "-") + ".test"}
		if err := compile(m, overlay, kit, pkg, t.Binary, "-tags="+o.tags); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(kit, t.Binary)); err != nil {
			continue // no tests
		}
		if race {
			t.Race = strings.TrimSuffix(t.Binary, ".test") + "-race.test"
			if err := compile(m, overlay, kit, pkg, t.Race, "-tags="+o.tags, "-race"); err != nil {
				return err
			}
		}
		if t.Flags, err = testFlags(m, pkg, o.tags); err != nil {
			return err
		}
		k.Packages = append(k.Packages, t)
	}
	text, err := json.MarshalIndent(k, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(kit, manifest), text, 0o666)
}

// judges is the folders of the packages whose tests run, mutated ones first.
func judges(m *module, sources []*source, tests []string) ([]string, error) {
	var paths []string
	for _, s := range sources {
		paths = append(paths, s.Path)
	}
	if len(tests) > 0 {
		out, err := goTool(m.Dir, append([]string{"list", "--"}, tests...)...)
		if err != nil {
			return nil, err
		}
		for _, path := range strings.Fields(string(out)) {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	for i, path := range paths {
		paths[i] = strings.TrimPrefix(strings.TrimPrefix(path, m.Path), "/")
	}
	return paths, nil
}

// testFlags is what the tests of pkg must be told: rapid would write each failure into
// the source tree, and try it again in the next run.
func testFlags(m *module, pkg, tags string) ([]string, error) {
	out, err := goTool(m.Dir, "list", "-tags="+tags, "-deps", "-test", "./"+pkg)
	if err != nil {
		return nil, err
	}
	if slices.Contains(strings.Fields(string(out)), "pgregory.net/rapid") {
		return []string{"-rapid.nofailfile"}, nil
	}
	return nil, nil
}

func compile(m *module, overlay, kit, pkg, binary string, flags ...string) error {
	out, err := filepath.Abs(filepath.Join(kit, binary))
	if err != nil {
		return err
	}
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", out}, flags...)
	_, err = goTool(m.Dir, append(args, "./"+pkg)...)
	return err
}

// overlay writes the mutated files and the list that the go command takes.
func (c *schema) overlay(m *module) (list string, clean func(), err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", nil, err
	}
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[name] = to
		return os.WriteFile(to, text, 0o666)
	}
	for name, text := range c.files {
		err = put(name, text)
		if err != nil {
			break
		}
	}
	if err == nil {
		err = put(filepath.Join(m.Dir, "internal", "mutate", "mutant", "mutant.go"), runtimeSource)
	}
	list = filepath.Join(dir, "overlay.json")
	if err == nil {
		var text []byte
		text, err = json.Marshal(map[string]any{"Replace": replace})
		if err == nil {
			err = os.WriteFile(list, text, 0o666)
		}
	}
	clean = func() { _ = os.RemoveAll(dir) }
	if err != nil {
		clean()
		return "", nil, err
	}
	return list, clean, nil
}

// open reads a kit.
func open(dir string) (*Kit, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifest))
	if err != nil {
		return nil, err
	}
	var k Kit
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifest), err)
	}
	return &k, nil
}

// addSelf copies this program into the kit, for the machine that runs it.
func addSelf(kit string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(kit, "mutate"), text, 0o777)
}

// canRace tells whether the race detector can be linked here.
func canRace() bool {
	out, err := goTool(".", "env", "CGO_ENABLED", "CC")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 || fields[0] != "1" {
		return false
	}
	_, err = exec.LookPath(fields[1])
	return err == nil
}
