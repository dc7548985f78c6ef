package npy

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leat-go/leat/loader/internal/columns"
	"github.com/leat-go/leat/loader/source"
)

// isZip reports whether a file that begins so is a zip archive: an empty one has only its end.
func isZip(start []byte) bool {
	return bytes.HasPrefix(start, []byte("PK\x03\x04")) || bytes.HasPrefix(start, []byte("PK\x05\x06"))
}

// archive are the arrays of an .npz archive.
func (in *opening) archive(ctx context.Context, f file) ([]columns.Array, error) {
	z, err := zip.NewReader(source.ReaderAt(ctx, f), f.size)
	if err != nil {
		return nil, f.zipped("a zip archive", err)
	}
	entries := make(map[string]*zip.File, len(z.File))
	var all []string
	for _, e := range z.File {
		name, isArray := strings.CutSuffix(e.Name, ".npy")
		if !isArray || name == "" {
			return nil, f.of(e).wrong(0, "arrays, whose names end in .npy, and nothing else", fmt.Sprintf("%q", e.Name))
		}
		if entries[name] != nil {
			return nil, f.of(e).wrong(0, "each array once", e.Name+" again")
		}
		entries[name], all = e, append(all, name)
	}
	if in.names == nil {
		if in.names = in.options.Arrays; len(in.names) == 0 {
			in.names = all
		}
	}
	if len(in.options.Arrays) == 0 && len(all) != len(in.names) {
		return nil, f.wrong(0, fmt.Sprintf("the arrays %v of the first archive", in.names), fmt.Sprint(all))
	}
	var arrays []columns.Array
	for _, name := range in.names {
		e := entries[name]
		if e == nil {
			return nil, f.wrong(0, fmt.Sprintf("the array %q", name), fmt.Sprintf("%q", all))
		}
		a, err := in.entry(ctx, f.of(e), e, name)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
	}
	return arrays, nil
}

// of is the same file, of whose errors the entry is the field.
func (f file) of(e *zip.File) file {
	f.entry = e.Name
	return f
}

// zipped is the error for an archive that package zip can't read: the file's fault, unless it
// could not be read itself.
func (f file) zipped(want string, err error) error {
	var read *source.Error
	if errors.As(err, &read) && read.Offset >= 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err // and no offset that the archive says and the file doesn't have
	}
	bad := f.wrong(0, want, err.Error())
	bad.Offset, bad.Err = -1, err
	return bad
}

// entry is the array of an entry: where it lies, if it is stored, else in memory.
func (in *opening) entry(ctx context.Context, f file, e *zip.File, name string) (a columns.Array, err error) {
	in.sums = append(in.sums, uint64(e.CRC32))
	const encrypted = 1
	switch {
	case e.Flags&encrypted != 0:
		return a, f.wrong(0, "an entry that is not encrypted", "one that is")
	case !slices.Contains([]uint16{zip.Store, zip.Deflate}, e.Method):
		return a, f.wrong(0, "an entry that is stored (0) or deflated (8)", fmt.Sprintf("method %d", e.Method))
	case e.Method == zip.Deflate:
		return in.inflated(ctx, f, e, name)
	}
	at, err := e.DataOffset()
	if err != nil {
		return a, f.zipped("an entry's header", err)
	}
	if e.UncompressedSize64 > uint64(max(0, f.size-at)) || e.CompressedSize64 != e.UncompressedSize64 {
		return a, f.wrong(at, "an entry that lies in the file", fmt.Sprintf("%d bytes that are stored as %d", e.UncompressedSize64, e.CompressedSize64))
	}
	return in.array(ctx, file{f.File, at, int64(e.UncompressedSize64), f.entry}, name)
}

// inflated is the array of a deflated entry. Package zip compares its size and its checksum.
func (in *opening) inflated(ctx context.Context, f file, e *zip.File, name string) (a columns.Array, err error) {
	if err := in.take(f, int64(e.UncompressedSize64), "a compressed array"); err != nil {
		return a, err
	}
	r, err := e.Open()
	if err != nil {
		return a, f.zipped("an entry's header", err)
	}
	defer r.Close()
	var data bytes.Buffer
	if _, err := data.ReadFrom(r); err != nil {
		return a, f.zipped("whole deflated data", err)
	}
	memory := columns.Memory(f.Name(), data.Bytes())
	return in.array(ctx, file{memory, 0, memory.Size(), f.entry}, name)
}
