package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leat-go/leat/loader/internal/columns"
	"github.com/leat-go/leat/loader/internal/whole"
	"github.com/leat-go/leat/loader/source"
)

// Index is what Open has done to know where the records of a file are.
type Index struct {
	// File is the name of the file, Records the number of its records.
	File    string
	Records int
	// Path is where the index is kept, empty if it is in memory.
	Path string
	// Built is set if the file was read through.
	Built bool
	// Why says why an index that was there was not used, and why none was kept; empty where
	// nothing is to be said.
	Why string
}

// keep opens the index of a file, or makes it.
func keep(ctx context.Context, s source.Source, f source.File, o Options) (*index, Index, error) {
	want := footer{Kind: o.Split.Kind, MaxLine: o.MaxLine, Size: f.Size(), Version: f.Version()}
	report := Index{File: f.Name(), Path: place(s, o)}
	if report.Path != "" {
		x, why := load(ctx, report.Path, want)
		if x != nil {
			report.Records = int(x.Records)
			return x, report, nil
		}
		report.Why = why
	}
	report.Built = true
	x, err := build(ctx, s, f, want, o, &report)
	if err != nil {
		return nil, report, err
	}
	report.Records = int(x.Records)
	return x, report, nil
}

// place is the path that the index of a file has, empty if it has none.
func place(s source.Source, o Options) string {
	path, local := source.LocalPath(s)
	switch {
	case o.InMemory:
		return ""
	case o.Index != "":
		name := s.Name()
		if absolute, err := filepath.Abs(path); local && err == nil {
			name = absolute
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(name))
		return filepath.Join(o.Index, fmt.Sprintf("%s.%016x.lines", filepath.Base(filepath.FromSlash(name)), h.Sum64()))
	case local:
		folder, name := filepath.Split(path)
		return filepath.Join(folder, "."+name+".lines")
	}
	return ""
}

// load opens an index that is there, if it is the one that is wanted.
func load(ctx context.Context, path string, want footer) (x *index, why string) {
	entries, err := source.Mapped(source.Path(path)).Open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	if err != nil {
		return nil, err.Error()
	}
	found, err := readFooter(ctx, entries)
	if err == nil {
		if why = found.differs(want); why == "" {
			return &index{entries: entries, footer: found}, ""
		}
	} else {
		why = err.Error()
	}
	_ = entries.Close()
	return nil, why
}

// build makes the index of a file, in a file of its own if that can be, and else in memory.
func build(ctx context.Context, s source.Source, f source.File, want footer, o Options, report *Index) (*index, error) {
	if report.Path != "" {
		x, err := buildFile(ctx, s, f, want, o, report.Path)
		var failed *writeError
		if err == nil || !errors.As(err, &failed) {
			return x, err
		}
		report.Path, report.Why = "", err.Error()
	}
	x := &index{footer: want}
	var memory bytes.Buffer
	if err := x.write(ctx, f, o.Split, &memory); err != nil {
		return nil, err
	}
	x.entries = columns.Memory("the index of "+f.Name(), memory.Bytes())
	return x, nil
}

// buildFile makes an index in its file. A failure to write is a *writeError.
func buildFile(ctx context.Context, s source.Source, f source.File, want footer, o Options, path string) (*index, error) {
	file, err := whole.Create(path)
	if err != nil {
		return nil, &writeError{err}
	}
	placed := false
	defer func() {
		if !placed { // also if Scan, which is a user's, panics
			_ = file.Discard()
		}
	}()
	if local, ok := source.LocalPath(s); ok { // whoever may read the file may read its index
		if stat, err := os.Stat(local); err == nil {
			_ = file.Chmod(stat.Mode().Perm() & 0o666)
		}
	}
	x := &index{footer: want}
	if err := x.write(ctx, f, o.Split, file); err != nil {
		return nil, err
	}
	// What was changed while it was read may have been read in part before and in part after.
	if now, err := source.Stat(ctx, s); err != nil || now.Version != want.Version {
		return nil, &writeError{errors.New("the file was changed while it was read")}
	}
	placed = true
	if err := file.Place(); err != nil {
		return nil, &writeError{err}
	}
	// Another process may have put its own there meanwhile, of the same file or of a later one.
	if loaded, _ := load(ctx, path, x.footer); loaded != nil {
		return loaded, nil
	}
	return nil, &writeError{&os.PathError{Op: "open", Path: path, Err: errors.New("the index was replaced at once")}}
}
