package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A schema is packages' source with all their mutants in it, each behind a test.
type schema struct {
	mutants []*Mutant
	files   map[string][]byte // by absolute name
	skipped map[string]int    // mutants not made, by reason
}

// newSchema makes the mutants of the sources' files, of all where only is empty.
func newSchema(m *module, sources []*source, only []string) (*schema, error) {
	out := &schema{files: map[string][]byte{}, skipped: map[string]int{}}
	number := 1
	for _, s := range sources {
		pkg := strings.TrimPrefix(strings.TrimPrefix(s.Path, m.Path), "/")
		var mutants []*Mutant
		changes := map[*file]edits{}
		for _, f := range s.files {
			if len(only) > 0 && !slices.Contains(only, filepath.Base(f.name)) {
				continue
			}
			found, e := find(s, f, pkg, number, out.skipped)
			mutants = append(mutants, found...)
			changes[f] = e
			number += len(found)
		}
		mutants, err := out.write(s, mutants, changes)
		if err != nil {
			return nil, err
		}
		out.mutants = append(out.mutants, mutants...)
	}
	return out, nil
}

// write applies the changes and leaves out those that do not compile.
func (c *schema) write(s *source, mutants []*Mutant, changes map[*file]edits) ([]*Mutant, error) {
	const tries = 20
	for range tries {
		texts, bad, err := s.apply(mutants, changes)
		if err != nil {
			return nil, err
		}
		if len(bad) == 0 {
			maps.Copy(c.files, texts)
			return mutants, nil
		}
		c.skipped["does not compile"] += len(bad)
		mutants = slices.DeleteFunc(mutants, func(m *Mutant) bool { return bad[m.Number] })
		for f, e := range changes {
			changes[f] = slices.DeleteFunc(e, func(e edit) bool { return bad[e.mutant] })
		}
	}
	return nil, fmt.Errorf("%s: still does not compile after %d tries", s.Path, tries)
}

// apply returns the changed files, and the mutants that the compiler complains about.
func (s *source) apply(mutants []*Mutant, changes map[*file]edits) (map[string][]byte, map[int]bool, error) {
	texts := map[string][]byte{}
	origin := map[string]func(int) int{}
	byName := map[string]*file{}
	var trees []*ast.File
	var errs []error
	for _, f := range s.files {
		e := changes[f]
		if len(e) == 0 {
			trees = append(trees, f.tree)
			continue
		}
		text, at := e.apply(f.text)
		name := s.module.set.Position(f.tree.Name.End()).Offset
		text = slices.Concat(text[:name], []byte(s.module.importLine()), text[name:])
		texts[f.name] = text
		shift := len(s.module.importLine())
		origin[f.name] = func(offset int) int { return at(max(0, offset-shift)) }
		byName[f.name] = f
		tree, err := parser.ParseFile(s.module.set, f.name, text, parser.SkipObjectResolution)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		trees = append(trees, tree)
	}
	if len(errs) == 0 {
		_, errs = s.module.check(s.Path, trees)
	}
	bad := map[int]bool{}
	for _, err := range errs {
		p := place(err)
		f := byName[p.Filename]
		if f == nil {
			return nil, nil, err
		}
		blamed := blame(mutants, f, origin[p.Filename](p.Offset))
		if len(blamed) == 0 {
			return nil, nil, err
		}
		for _, n := range blamed {
			bad[n] = true
		}
	}
	return texts, bad, nil
}

// importLine goes behind a file's package clause, in the same line.
func (m *module) importLine() string { return fmt.Sprintf("; import leatmutant %q", m.runtimePath()) }

// runtimePath is where package mutant is in the mutated module.
func (m *module) runtimePath() string { return m.Path + "/internal/mutate/mutant" }

func place(err error) token.Position {
	var typed types.Error
	if errors.As(err, &typed) {
		return typed.Fset.Position(typed.Pos)
	}
	var list scanner.ErrorList
	if errors.As(err, &list) {
		return list[0].Pos
	}
	return token.Position{}
}

// blame is the mutants of the smallest piece of source around an offset, or else those
// of the function that it is in: an error may stand at its end.
func blame(mutants []*Mutant, f *file, offset int) []int {
	smallest, fn := -1, ""
	for _, m := range mutants {
		if m.source != f {
			continue
		}
		if m.start <= offset && offset <= m.end && (smallest < 0 || m.end-m.start < smallest) {
			smallest = m.end - m.start
		}
		if m.start <= offset {
			fn = m.Func
		}
	}
	var numbers []int
	for _, m := range mutants {
		if m.source != f {
			continue
		}
		around := m.start <= offset && offset <= m.end
		if around && m.end-m.start == smallest || smallest < 0 && m.Func == fn {
			numbers = append(numbers, m.Number)
		}
	}
	return numbers
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
