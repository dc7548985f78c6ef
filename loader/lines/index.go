package lines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/leat-go/leat/loader/source"
)

// An index has an entry for each record: its offset as 64 bits, its length and its checksum as
// 32 bits each, little-endian. Behind them is the footer as JSON, and at the end the footer's
// length and checksum and the magic.
const (
	entryBytes = 16
	tailBytes  = 8 + len(magic)
	magic      = "leat lines 1\n"
	mostFooter = 1 << 16
)

// footer says what an index is of.
type footer struct {
	Kind    string `json:"kind"`
	MaxLine int    `json:"max_line"`
	// Size and Version are those of the file.
	Size    int64  `json:"size"`
	Version string `json:"version"`
	Records int64  `json:"records"`
	// Sum is of the checksums and lengths of all records.
	Sum uint32 `json:"sum"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// index is where the records of a file are.
type index struct {
	entries source.File // of which those of footer.Records are looked at
	footer
}

// entry is where a record is.
type entry struct {
	offset int64
	length int
	sum    uint32
}

func (x *index) entry(ctx context.Context, record int, b *[entryBytes]byte) (e entry, err error) {
	if err := source.ReadFull(ctx, x.entries, b[:], int64(record)*entryBytes); err != nil {
		return e, err
	}
	e.offset = int64(binary.LittleEndian.Uint64(b[:]))
	e.length = int(min(binary.LittleEndian.Uint32(b[8:]), math.MaxInt32))
	e.sum = binary.LittleEndian.Uint32(b[12:])
	return e, nil
}

// write scans the file and writes its index.
func (x *index) write(ctx context.Context, f source.File, split Split, to io.Writer) error {
	w := bufio.NewWriterSize(to, 64<<10)
	var b [entryBytes]byte
	err := split.Scan(ctx, f, x.MaxLine, func(offset int64, text []byte) error {
		sum := crc32.Checksum(text, castagnoli)
		binary.LittleEndian.PutUint64(b[:], uint64(offset))
		binary.LittleEndian.PutUint32(b[8:], uint32(len(text)))
		binary.LittleEndian.PutUint32(b[12:], sum)
		x.Records++
		x.Sum = crc32.Update(x.Sum, castagnoli, b[8:])
		if _, err := w.Write(b[:]); err != nil {
			return &writeError{err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	end, err := json.Marshal(x.footer)
	if err != nil {
		return err
	}
	end = binary.LittleEndian.AppendUint32(end, uint32(len(end)))
	end = binary.LittleEndian.AppendUint32(end, crc32.Checksum(end[:len(end)-4], castagnoli))
	_, _ = w.Write(append(end, magic...)) // Flush has its error
	if err := w.Flush(); err != nil {
		return &writeError{err}
	}
	return nil
}

// writeError is a failure of what an index is written to, and not of what it is of.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// readFooter reads what an index is of, and looks whether it is whole.
func readFooter(ctx context.Context, entries source.File) (f footer, err error) {
	tail := make([]byte, tailBytes)
	if err := source.ReadFull(ctx, entries, tail, entries.Size()-int64(tailBytes)); err != nil {
		return f, err
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	begin := entries.Size() - int64(tailBytes) - length
	if !bytes.HasSuffix(tail, []byte(magic)) || length > mostFooter || begin < 0 {
		return f, fmt.Errorf("%s is no index", entries.Name())
	}
	text := make([]byte, length)
	if err := source.ReadFull(ctx, entries, text, begin); err != nil {
		return f, err
	}
	if crc32.Checksum(text, castagnoli) != binary.LittleEndian.Uint32(tail[4:]) {
		return f, fmt.Errorf("%s is damaged", entries.Name())
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("%s: %w", entries.Name(), err)
	}
	if f.Records < 0 || begin%entryBytes != 0 || f.Records != begin/entryBytes {
		return f, fmt.Errorf("%s has %d bytes of entries for %d records", entries.Name(), begin, f.Records)
	}
	return f, nil
}

// differs is why an index is not that of a file, empty if it is.
func (f footer) differs(want footer) string {
	switch {
	case f.Kind != want.Kind:
		return fmt.Sprintf("it was made for %q, this is %q", f.Kind, want.Kind)
	case f.MaxLine != want.MaxLine:
		return fmt.Sprintf("it was made with MaxLine %d, this is %d", f.MaxLine, want.MaxLine)
	case f.Size != want.Size:
		return fmt.Sprintf("the file had %d bytes, it has %d", f.Size, want.Size)
	case f.Version != want.Version:
		return "the file has changed since"
	}
	return ""
}
