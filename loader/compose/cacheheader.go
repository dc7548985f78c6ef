package compose

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// header is how a cache's file begins: the magic, the size of what follows as four bytes,
// and the header itself as JSON. The records of the samples begin at the next multiple of
// page, one every stride bytes, so that the size of a whole file is known.
type header struct {
	Version     string `json:"version"` // the user's
	Fields      string `json:"fields"`
	Samples     int64  `json:"samples"`
	Fingerprint uint64 `json:"fingerprint,string"`
	Record      int64  `json:"record"` // the most bytes of a sample

	encoded []byte
}

const (
	magic = "leat cache 1\n"
	page  = 4096
	// maxHeader is far above any header that is written.
	maxHeader = 1 << 20
)

// newHeader is that of a cache of a part.
func newHeader(p *part, version string, most int) (header, error) {
	h := header{Version: version, Fields: listed(p.fields), Samples: int64(p.length), Fingerprint: p.fingerprint(), Record: int64(most)}
	encoded, err := json.Marshal(h)
	if err != nil {
		return h, err
	}
	if len(encoded) > maxHeader {
		return h, mistake("CacheFile: version", fmt.Sprintf("%d bytes with the fields", len(encoded)), fmt.Sprintf("at most %d", maxHeader))
	}
	h.encoded = binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(encoded)))
	h.encoded = append(h.encoded, encoded...)
	if h.Samples > (maxFile-2*maxHeader)/(h.stride()) || h.Record >= 1<<32 {
		return h, mistake("CacheFile: ds", fmt.Sprintf("a dataset of %d samples of up to %d bytes", h.Samples, h.Record), "samples below 4 GiB, and fewer of them")
	}
	return h, nil
}

// stride is the distance of records.
func (h *header) stride() int64 { return recordHead + h.Record }

// offset is where the record of a sample is.
func (h *header) offset(index int) int64 {
	pages := (int64(len(h.encoded)) + page - 1) / page
	return pages*page + int64(index)*h.stride()
}

// size is that of a whole file.
func (h *header) size() int64 { return h.offset(int(h.Samples)) }

// errNoCache is for a file that this package has not made, and must not replace.
var errNoCache = errors.New("the file is no cache: remove it, or choose another name")

// fits returns why a file is not the whole one of this header, empty if it is. The error is
// for one that can't be read, or is no cache.
func (h *header) fits(f *os.File) (reason string, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errNoCache
	}
	var start [len(magic) + 4]byte
	switch n, err := io.ReadFull(f, start[:]); {
	case err == nil:
	case errors.Is(err, io.ErrUnexpectedEOF) && n > 0 && bytes.HasPrefix([]byte(magic), start[:min(n, len(magic))]):
		return "it is cut off", nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "", errNoCache
	default:
		return "", err
	}
	if string(start[:len(magic)]) != magic {
		return "", errNoCache
	}
	size := binary.LittleEndian.Uint32(start[len(magic):])
	if size > maxHeader || int64(size) > info.Size() {
		return "it is cut off, or its header is damaged", nil
	}
	encoded := make([]byte, size)
	if _, err := io.ReadFull(f, encoded); err != nil {
		return "it is cut off", nil
	}
	var found header
	if err := json.Unmarshal(encoded, &found); err != nil {
		return "its header is damaged", nil
	}
	if reason := h.differs(&found); reason != "" {
		return reason, nil
	}
	if info.Size() != h.size() {
		return fmt.Sprintf("it has %d bytes instead of %d", info.Size(), h.size()), nil
	}
	return "", nil
}

// differs is what another header has of its own.
func (h *header) differs(found *header) string {
	switch {
	case found.Version != h.Version:
		return fmt.Sprintf("it was made with version %q, this is %q", found.Version, h.Version)
	case found.Fields != h.Fields || found.Record != h.Record:
		return fmt.Sprintf("its samples have %s, these have %s", found.Fields, h.Fields)
	case found.Samples != h.Samples:
		return fmt.Sprintf("it has %d samples, the dataset %d", found.Samples, h.Samples)
	case found.Fingerprint != h.Fingerprint:
		return "it was made of other data: the fingerprint differs"
	}
	return ""
}
