package stream

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/leat-go/leat/loader"
)

// A file begins with fileMagic, the size of the header as four bytes, and the header as JSON.
// Records follow, each a checksum of what is behind it and the size of its body, four bytes
// each, and the body, whose first byte is the kind. The last record is the index, behind which
// there are its offset and the size of the file, eight bytes each.
const (
	fileMagic  = "leat shard 2\n"
	fileHead   = 8       // of a record
	fileTail   = 16      // behind the index
	mostHeader = 1 << 20 // far above any that is written
	mostRecord = 1 << 30
)

// The kinds of records.
const (
	recordItem    = 'i' // origin, value
	recordFailure = 'f' // origin, text of the error
	recordPlace   = 'p' // a mark of the stream below, of no bytes if that has none there
	recordIndex   = 'x' // the number of items, and for each place that of the items before and its offset
)

// fileHeader says what a file is of.
type fileHeader struct {
	Version     string `json:"version"` // the user's
	Fingerprint uint64 `json:"fingerprint,string"`
	Shard       int    `json:"shard"`
	Shards      int    `json:"shards"`
}

func (c *FileCache[T]) header(shard int) fileHeader {
	return fileHeader{Version: c.version, Fingerprint: c.s.fingerprint, Shard: shard, Shards: len(c.shards)}
}

func (h fileHeader) append(dst []byte) []byte {
	encoded, _ := json.Marshal(h) // of strings and numbers
	dst = binary.LittleEndian.AppendUint32(append(dst, fileMagic...), uint32(len(encoded)))
	return append(dst, encoded...)
}

// differs is what another header has of its own.
func (h fileHeader) differs(found fileHeader) string {
	switch {
	case found.Version != h.Version:
		return fmt.Sprintf("the file was made with version %q, this is %q", found.Version, h.Version)
	case found.Fingerprint != h.Fingerprint:
		return "the file was made of other data: the fingerprint differs"
	case found != h:
		return fmt.Sprintf("the file is of shard %d of %d", found.Shard, found.Shards)
	}
	return ""
}

// fileIndex is where the places of a whole file are.
type fileIndex struct {
	items  int64
	size   int64
	places []filePlace // in order; the first is before all items
}

// filePlace is a place: items before it, and the offset of its record.
type filePlace struct{ items, offset int64 }

// before is the last place up to item n.
func (x *fileIndex) before(n int64) filePlace {
	return x.places[max(0, sort.Search(len(x.places), func(i int) bool { return x.places[i].items > n })-1)]
}

// errNoCache is for a file that this package has not made, and must not replace.
var errNoCache = errors.New("the file is no cache: remove it, or choose another directory")

var errDamaged = errors.New("a checksum is wrong, or a size")

// openIndex reads the header and the index of a file. reason is why it can't be used. The error
// is for one that can't be read, or is no cache.
func openIndex(path string, want fileHeader) (x *fileIndex, reason string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	return indexOf(f, want)
}

// indexOf is openIndex for a file that is open, at its beginning.
func indexOf(f *os.File, want fileHeader) (x *fileIndex, reason string, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	var start [len(fileMagic) + 4]byte
	if n, err := io.ReadFull(f, start[:]); !info.Mode().IsRegular() || n < len(fileMagic) || string(start[:len(fileMagic)]) != fileMagic {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, "", err
		}
		return nil, "", errNoCache
	}
	size := int64(binary.LittleEndian.Uint32(start[len(fileMagic):]))
	header := make([]byte, min(size, mostHeader, info.Size()))
	var found fileHeader
	if _, err := io.ReadFull(f, header); err != nil || int64(len(header)) != size || json.Unmarshal(header, &found) != nil {
		return nil, "the file is cut off, or its header is damaged", nil
	}
	if reason := want.differs(found); reason != "" {
		return nil, reason, nil
	}
	if x, err = readIndex(f, info.Size()); err != nil {
		return nil, "the file is cut off, or its index is damaged", nil
	}
	return x, "", nil
}

func readIndex(f io.ReaderAt, size int64) (*fileIndex, error) {
	var tail [fileTail]byte
	if _, err := f.ReadAt(tail[:], size-fileTail); err != nil {
		return nil, err
	}
	at := int64(binary.LittleEndian.Uint64(tail[:]))
	if at < 0 || at > size-fileTail-fileHead || int64(binary.LittleEndian.Uint64(tail[8:])) != size {
		return nil, errDamaged
	}
	records := recordReader{from: io.NewSectionReader(f, at, size-fileTail-at)}
	body, err := records.next()
	if err != nil || body[0] != recordIndex {
		return nil, errDamaged
	}
	x := &fileIndex{size: size}
	var n uint64
	n, body = uvarint(body[1:])
	x.items = int64(n)
	for len(body) > 0 {
		var items, offset uint64
		items, body = uvarint(body)
		offset, body = uvarint(body)
		x.places = append(x.places, filePlace{int64(items), int64(offset)})
	}
	if len(x.places) == 0 {
		return nil, errDamaged
	}
	return x, nil
}

func uvarint(b []byte) (uint64, []byte) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil
	}
	return v, b[n:]
}

// recordReader reads records, one after the other.
type recordReader struct {
	from io.Reader
	head [fileHead]byte
	body []byte // used again
}

// atATime is how much memory a record gets before its bytes are there: its size may be damaged.
const atATime = 1 << 20

// next is the body of the next record, borrowed until the one after it.
func (r *recordReader) next() ([]byte, error) {
	if _, err := io.ReadFull(r.from, r.head[:]); err != nil {
		return nil, err
	}
	size := int(binary.LittleEndian.Uint32(r.head[4:]))
	if size < 1 || size > mostRecord {
		return nil, errDamaged
	}
	r.body = r.body[:0]
	for got := 0; got < size; got = len(r.body) {
		to := min(size, got+atATime)
		r.body = slices.Grow(r.body, to-got)[:to]
		if _, err := io.ReadFull(r.from, r.body[got:]); err != nil {
			return nil, errors.Join(errDamaged, err)
		}
	}
	sum := crc32.Update(crc32.Checksum(r.head[4:], checksums), checksums, r.body)
	if sum != binary.LittleEndian.Uint32(r.head[:]) {
		return nil, errDamaged
	}
	return r.body, nil
}

var checksums = crc32.MakeTable(crc32.Castagnoli)

// sealed fills in the head of the record that begins at begin of b, and ends with b.
func sealed(b []byte, begin int) []byte {
	binary.LittleEndian.PutUint32(b[begin+4:], uint32(len(b)-begin-fileHead))
	binary.LittleEndian.PutUint32(b[begin:], crc32.Checksum(b[begin+4:], checksums))
	return b
}

func appendOrigin(dst []byte, o loader.Origin) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(o.File)))
	dst = append(dst, o.File...)
	for _, n := range []int64{o.Offset, o.Record, o.Line} {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

// parseOrigin takes an origin from the front. Its name is that of before, if it is the same.
func parseOrigin(b []byte, before string) (o loader.Origin, rest []byte, err error) {
	n, rest := uvarint(b)
	if n > uint64(len(rest)) {
		return o, nil, errDamaged
	}
	if o.File = before; string(rest[:n]) != before {
		o.File = string(rest[:n])
	}
	rest = rest[n:]
	for _, to := range []*int64{&o.Offset, &o.Record, &o.Line} {
		v, read := binary.Varint(rest)
		if read <= 0 {
			return o, nil, errDamaged
		}
		*to, rest = v, rest[read:]
	}
	return o, rest, nil
}
