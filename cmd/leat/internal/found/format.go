package found

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"

	"github.com/leat-go/leat/loader/source"
)

// A format is one that is recognised and opened.
type format struct {
	name string
	// file reports whether a file has it, by what it begins with or by its name.
	file func(h head) bool
	// folder reports whether a folder is of it; nil where a folder is just files.
	folder func(path string) bool
	open   func(ctx context.Context, s *Set, o Options) error
}

// formats are all, those first that are surest.
var formats []format

func init() { // their functions speak of Formats
	formats = []format{
		{name: "images", folder: isPictures, file: never, open: openPictures},
		{name: "npy", file: func(h head) bool { return h.begins("\x93NUMPY") || h.begins("PK\x03\x04") && h.named(".npz") }, open: openNPY},
		{name: "idx", file: isIDX, open: openIDX},
		{name: "safetensors", file: isSafetensors, open: openSafetensors},
		{name: "tar", file: isTar, open: openTar},
		{name: "tfrecord", file: isTFRecord, open: openTFRecord},
		{name: "cifar", file: isCIFAR, open: openCIFAR},
		{name: "jsonl", file: func(h head) bool { return h.named(".jsonl", ".ndjson") }, open: openJSONL},
		{name: "csv", file: func(h head) bool { return h.named(".csv", ".tsv") }, open: openCSV},
		{name: "tokens", file: isTokens, open: openTokens},
	}
}

// Formats are the names of those that are recognised.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

func never(head) bool { return false }

// A head is how a file begins, and what it is called.
type head struct {
	name  string // of the file alone, in lower case
	size  int64
	bytes []byte
}

// headBytes is as much as any format needs to be told from others: up to the magic of tar.
const headBytes = 512

func readHead(ctx context.Context, s source.Source) (h head, err error) {
	f, err := s.Open(ctx)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h = head{name: strings.ToLower(filepath.Base(s.Name())), size: f.Size(), bytes: make([]byte, min(headBytes, f.Size()))}
	return h, source.ReadFull(ctx, f, h.bytes, 0)
}

func (h head) begins(with string) bool { return bytes.HasPrefix(h.bytes, []byte(with)) }

func (h head) named(suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(h.name, suffix) {
			return true
		}
	}
	return false
}

// elsewhere are formats that are known and not opened here, by how files begin.
var elsewhere = []struct{ magic, what string }{
	{"PAR1", "a Parquet file, which module loader/parquet reads"},
	{"ARROW1", "an Arrow file, which module loader/parquet reads"},
	{"\x1f\x8b", "compressed by gzip, so that no sample can be had by its number: unpack it, or read it as a stream"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd, so that no sample can be had by its number: unpack it, or read it as a stream"},
	{"\x80\x02", "a pickle, a program that runs when it is read"},
	{"\x80\x04", "a pickle, a program that runs when it is read"},
	{"\x80\x05", "a pickle, a program that runs when it is read"},
}

// format is the name of the file's format, or empty with what else it is. With a given one, a
// file has it that has no other.
func (h head) format(given string) (name, reason string) {
	for _, f := range formats {
		if f.file(h) && (given == "" || f.name == given) {
			return f.name, ""
		}
	}
	for _, other := range elsewhere {
		if h.begins(other.magic) {
			return "", other.what
		}
	}
	if isPicture(h.bytes) {
		return "", "a picture: want a folder that has one for each class, with pictures in it"
	}
	if given != "" && !h.knownAsOther(given) {
		return given, ""
	}
	return "", ""
}

func (h head) knownAsOther(given string) bool {
	for _, f := range formats {
		if f.name != given && f.name != "tokens" && f.file(h) {
			return true
		}
	}
	return h.named(".json", ".txt", ".md", ".py")
}

// isIDX looks into a gzipped file too, as MNIST's are.
func isIDX(h head) bool {
	b := h.bytes
	if h.begins("\x1f\x8b") {
		z, err := gzip.NewReader(bytes.NewReader(h.bytes))
		if err != nil {
			return false
		}
		b = make([]byte, 4)
		if _, err := io.ReadFull(z, b); err != nil {
			return false
		}
	}
	return len(b) >= 4 && b[0] == 0 && b[1] == 0 && bytes.IndexByte([]byte{8, 9, 11, 12, 13, 14}, b[2]) >= 0 && b[3] >= 1 && b[3] <= 8
}

func isSafetensors(h head) bool {
	if len(h.bytes) < 9 {
		return false
	}
	n := binary.LittleEndian.Uint64(h.bytes)
	return n >= 2 && n <= uint64(h.size) && h.bytes[8] == '{'
}

// isTar looks for the magic of both POSIX and GNU.
func isTar(h head) bool { return len(h.bytes) >= 262 && string(h.bytes[257:262]) == "ustar" }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// isTFRecord checks the checksum of the first record's length.
func isTFRecord(h head) bool {
	if len(h.bytes) < 12 {
		return false
	}
	sum := crc32.Checksum(h.bytes[:8], castagnoli)
	return binary.LittleEndian.Uint32(h.bytes[8:]) == (sum>>15|sum<<17)+0xa282ead8
}

// isCIFAR goes by the names, since the files have nothing but pictures.
func isCIFAR(h head) bool {
	return h.named(".bin") && h.size > 0 && (h.size%3073 == 0 || h.size%3074 == 0) &&
		(strings.HasPrefix(h.name, "data_batch") || h.name == "test_batch.bin" || h.name == "train.bin" || h.name == "test.bin")
}

// isTokens is for what begins as llm.c's and Megatron's files do, and for names that files
// without a header have.
func isTokens(h head) bool {
	for _, magic := range []string{"\x88\xd8\x34\x01", "\xa1\xd9\x34\x01", "MMIDIDX\x00\x00"} {
		if h.begins(magic) {
			return true
		}
	}
	return h.named(".bin") || h.named(".npy") && !h.begins("\x93NUMPY")
}
