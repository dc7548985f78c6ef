package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Glob returns the regular files whose paths match a pattern, sorted by the bytes of their
// names, each once. The pattern has forward slashes; on Windows backslashes are taken for
// them, and nothing can be escaped.
//
//	?  *  [a-z]  [^a-z]   within a name, as in package path
//	**                    as a whole name: any number of folders, none too
//	{a,b}  {000..123}     see Expand
//	\*                    the character itself, as any behind a backslash
//
// Names that begin with a point are matched only by a pattern that writes it. Links are
// followed, but not by "**", which could go round in circles; one that leads nowhere is
// kept, and fails when it is opened. What else is no regular file is left out.
//
// Each word that the braces stand for must match a file: a shard that is missing from
// {000..123} is an error, and so is a pattern that nothing matches. The *PatternError wraps
// fs.ErrNotExist and names what is missing. A folder that can't be read is an error too.
func Glob(pattern string) ([]Source, error) {
	names, err := glob(osTree{}, pattern, filepath.ToSlash(pattern))
	if err != nil {
		return nil, err
	}
	sources := make([]Source, len(names))
	for i, name := range names {
		sources[i] = Path(name)
	}
	return sources, nil
}

// GlobFS is Glob for the files of fsys.
func GlobFS(fsys fs.FS, pattern string) ([]Source, error) {
	if fsys == nil {
		return nil, failed(opStat, pattern, errNoFS)
	}
	names, err := glob(fsTree{fsys}, pattern, pattern)
	if err != nil {
		return nil, err
	}
	sources := make([]Source, len(names))
	for i, name := range names {
		sources[i] = FS(fsys, name)
	}
	return sources, nil
}

// glob returns the names that match; asked is the pattern as the user wrote it.
func glob(t tree, asked, pattern string) ([]string, error) {
	words, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	s := search{tree: t}
	var missing []string
	for _, word := range words {
		had := len(s.found)
		if err := s.word(word); err != nil {
			if errors.Is(err, path.ErrBadPattern) {
				return nil, &PatternError{Pattern: asked, At: -1, Err: err}
			}
			return nil, err
		}
		if len(s.found) == had {
			missing = append(missing, word)
		}
	}
	if len(missing) > 0 {
		return nil, &PatternError{Pattern: asked, At: -1, Err: noMatch(asked, missing, len(words))}
	}
	slices.Sort(s.found)
	return slices.Compact(s.found), nil
}

// noMatch says which of the words match nothing.
func noMatch(pattern string, missing []string, words int) error {
	const most = 5
	if words == 1 && missing[0] == pattern {
		return fmt.Errorf("no file matches: %w", fs.ErrNotExist)
	}
	named := strings.Join(missing[:min(most, len(missing))], " ")
	if len(missing) > most {
		named += " and others"
	}
	return fmt.Errorf("no file matches %d of its %d names, %s: %w", len(missing), words, named, fs.ErrNotExist)
}

// tree is what globs look at. Names have slashes, and "" is where they begin.
type tree interface {
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
}

// search collects the files that match.
type search struct {
	tree  tree
	found []string
}

// word searches for a pattern without braces.
func (s *search) word(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%s: %w", pattern, err)
	}
	below := strings.TrimLeft(pattern, "/")
	root := pattern[:len(pattern)-len(below)]
	var steps []string
	for step := range strings.SplitSeq(below, "/") {
		again := step == "**" && len(steps) > 0 && steps[len(steps)-1] == "**"
		if step != "" && step != "." && !again {
			steps = append(steps, step)
		}
	}
	if len(steps) > 0 && steps[len(steps)-1] == "**" {
		steps = append(steps, "*")
	}
	if len(steps) == 0 || strings.HasSuffix(pattern, "/") {
		return nil // a folder
	}
	return s.below(root, steps)
}

// below adds the files in a folder that the steps lead to.
func (s *search) below(dir string, steps []string) error {
	step := steps[0]
	if !strings.ContainsAny(step, `*?[\`) {
		return s.take(join(dir, step), steps[1:])
	}
	if plain, ok := literal(step); ok {
		return s.take(join(dir, plain), steps[1:])
	}
	entries, err := s.tree.ReadDir(dir)
	if err != nil {
		if stat, missing := s.tree.Stat(dir); absent(missing) || missing == nil && !stat.IsDir() {
			return nil
		}
		return failed(opOpen, dir, err)
	}
	if step == "**" {
		return s.deep(dir, steps, entries)
	}
	for _, entry := range entries {
		name := entry.Name()
		if hidden(name) && !hidden(step) {
			continue
		}
		if ok, _ := path.Match(step, name); !ok {
			continue
		}
		if err := s.entry(join(dir, name), entry, steps[1:]); err != nil {
			return err
		}
	}
	return nil
}

// deep is below for a first step that stands for any number of folders.
func (s *search) deep(dir string, steps []string, entries []fs.DirEntry) error {
	if err := s.below(dir, steps[1:]); err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || hidden(entry.Name()) {
			continue
		}
		if err := s.below(join(dir, entry.Name()), steps); err != nil {
			return err
		}
	}
	return nil
}

// entry adds what a folder's entry leads to. Most need no look at the file itself.
func (s *search) entry(name string, entry fs.DirEntry, steps []string) error {
	mode := entry.Type()
	switch {
	case mode&fs.ModeSymlink != 0:
		return s.link(name, steps)
	case len(steps) == 0 && mode.IsRegular():
		s.found = append(s.found, name)
	case len(steps) > 0 && mode.IsDir():
		return s.below(name, steps)
	}
	return nil
}

// link adds what a link leads to. One that leads nowhere is kept, so that Open tells of
// it: left out it would be a sample less.
func (s *search) link(name string, steps []string) error {
	if len(steps) == 0 {
		if _, err := s.tree.Stat(name); absent(err) {
			s.found = append(s.found, name)
			return nil
		}
	}
	return s.take(name, steps)
}

// take adds what a name leads to that may be nothing.
func (s *search) take(name string, steps []string) error {
	if len(steps) > 0 {
		return s.below(name, steps)
	}
	stat, err := s.tree.Stat(name)
	switch {
	case absent(err):
		return nil
	case err != nil:
		return failed(opStat, name, err)
	case stat.Mode().IsRegular():
		s.found = append(s.found, name)
	}
	return nil
}

// literal is the name that a step stands for if there is only one.
func literal(step string) (name string, ok bool) {
	for i := 0; i < len(step); i++ {
		switch step[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return "", false
		}
	}
	return unescape(step), true
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// absent reports whether there is no such file, or what should be its folder is none.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func join(dir, name string) string {
	if dir == "" || strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
