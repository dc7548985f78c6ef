package mds

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/leat-go/leat/loader/source"
)

// indexName is the file that names the others.
const indexName = "index.json"

// maxIndex is the largest index: a shard takes about 600 bytes in it.
const maxIndex = 1 << 28

// fileInfo is what the index says of a file.
type fileInfo struct {
	Name   string            `json:"basename"`
	Bytes  int64             `json:"bytes"`
	Hashes map[string]string `json:"hashes"`
}

// shardInfo is what the index says of a shard.
type shardInfo struct {
	Encodings   []string  `json:"column_encodings"`
	Names       []string  `json:"column_names"`
	Sizes       []*int64  `json:"column_sizes"`
	Compression *string   `json:"compression"`
	Format      string    `json:"format"`
	Raw         fileInfo  `json:"raw_data"`
	Samples     int64     `json:"samples"`
	Version     int       `json:"version"`
	Zip         *fileInfo `json:"zip_data"`
}

// folder is an index that was read.
type folder struct {
	file    func(name string) source.Source
	columns []Column
	shards  []shardInfo
	sum     uint64
}

// readIndex reads and checks the index.
func readIndex(ctx context.Context, file func(name string) source.Source) (*folder, error) {
	f, err := file(indexName).Open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	wrong := func(field, want, got string, err error) error {
		return &source.FormatError{Format: "mds", File: f.Name(), Offset: -1, Record: -1, Field: field, Want: want, Got: got, Err: err}
	}
	if f.Size() > maxIndex {
		return nil, wrong("", fmt.Sprintf("an index of at most %d bytes", maxIndex), fmt.Sprint(f.Size()), nil)
	}
	text := make([]byte, f.Size())
	if err := source.ReadFull(ctx, f, text, 0); err != nil {
		return nil, err
	}
	var index struct {
		Version int         `json:"version"`
		Shards  []shardInfo `json:"shards"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, wrong("", "an index in JSON", err.Error(), err)
	}
	if index.Version != 2 {
		return nil, wrong("version", "2", fmt.Sprint(index.Version), nil)
	}
	d := &folder{file: file, shards: index.Shards}
	if len(d.shards) == 0 {
		return nil, wrong("shards", "one shard or more", "none", nil)
	}
	names := map[string]bool{}
	for i := range d.shards {
		field := fmt.Sprintf("shards[%d]", i)
		if part, want, got := d.check(i, names); want != "" {
			return nil, wrong(field+part, want, got, nil)
		}
	}
	d.sum = d.fingerprint()
	return d, nil
}

// check returns what is wrong with a shard, and where.
func (d *folder) check(i int, names map[string]bool) (field, want, got string) {
	s := &d.shards[i]
	switch {
	case s.Format != "mds":
		return ".format", "mds", fmt.Sprintf("%.20q", s.Format)
	case s.Version != 2:
		return ".version", "2", fmt.Sprint(s.Version)
	case len(s.Names) == 0 || len(s.Names) != len(s.Encodings) || len(s.Names) != len(s.Sizes):
		return "", "as many names of columns as encodings and sizes", fmt.Sprintf("%d, %d and %d", len(s.Names), len(s.Encodings), len(s.Sizes))
	case s.Raw.Bytes > math.MaxUint32:
		return ".raw_data.bytes", fmt.Sprintf("at most the %d that an offset reaches", uint32(math.MaxUint32)), fmt.Sprint(s.Raw.Bytes)
	case s.Samples < 0 || s.Raw.Bytes < 0 || s.Samples > (s.Raw.Bytes-8)/4:
		return ".samples", fmt.Sprintf("what %d bytes have room for", s.Raw.Bytes), fmt.Sprint(s.Samples)
	}
	files := []fileInfo{s.Raw}
	if s.Zip != nil {
		files = append(files, *s.Zip)
	}
	for _, f := range files {
		// What leads out of the folder is not opened.
		if !fs.ValidPath(f.Name) || !filepath.IsLocal(filepath.FromSlash(f.Name)) || f.Name == "." {
			return ".basename", "a file in the folder", fmt.Sprintf("%.100q", f.Name)
		}
		if names[f.Name] {
			return ".basename", "each file once", f.Name
		}
		names[f.Name] = true
	}
	var columns []Column
	there := make(map[string]bool)
	for k, name := range s.Names {
		c, want, got := newColumn(name, s.Encodings[k], s.Sizes[k])
		if want != "" {
			return "." + name, want, got
		}
		if there[name] {
			return "." + name, "each column once", "another"
		}
		there[name], columns = true, append(columns, c)
	}
	if i == 0 {
		d.columns = columns
	}
	same := func(a, b Column) bool { return a.Name == b.Name && a.Encoding == b.Encoding && a.size == b.size }
	if !slices.EqualFunc(columns, d.columns, same) {
		return "", "the columns of the first shard", fmt.Sprint(s.Names, s.Encodings)
	}
	return "", "", ""
}

// fingerprint is of the names, sizes and checksums that the index has: the same of compressed
// shards, and of copies elsewhere.
func (d *folder) fingerprint() uint64 {
	h := fnv.New64a()
	for _, s := range d.shards {
		fmt.Fprintf(h, "%q %d %d ", s.Raw.Name, s.Raw.Bytes, s.Samples)
		for _, name := range slices.Sorted(maps.Keys(s.Raw.Hashes)) {
			fmt.Fprintf(h, "%q=%q ", name, s.Raw.Hashes[name])
		}
	}
	return h.Sum64()
}

// exists reports whether a plain shard is there. Where only the compressed one is, that is no error.
func (d *folder) exists(ctx context.Context, s *shardInfo) (bool, error) {
	_, err := source.Stat(ctx, d.file(s.Raw.Name))
	if err != nil && errors.Is(err, fs.ErrNotExist) && s.Zip != nil {
		return false, nil
	}
	return err == nil, err
}

// offsets reads and checks the beginning of a shard: 4 bytes for the number of samples and 4 for
// each offset. It returns where the samples begin and, last, where they end. read fills p with
// what comes next. Memory follows the offsets that are right: the index can state any number.
func (s *shardInfo) offsets(file string, read func(p []byte) error) ([]uint32, error) {
	wrong := func(at int64, want, got string) error {
		return &source.FormatError{Format: "mds", File: file, Offset: at, Record: -1, Want: want, Got: got}
	}
	words := s.Samples + 2
	piece := make([]byte, 4*min(words, 1<<16))
	var out []uint32
	before := 4 * words
	for at := int64(0); at < words; {
		b := piece[:4*min(words-at, 1<<16)]
		if err := read(b); err != nil {
			return nil, err
		}
		for ; len(b) > 0; b, at = b[4:], at+1 {
			word := binary.LittleEndian.Uint32(b)
			switch {
			case at == 0 && int64(word) != s.Samples:
				return nil, wrong(0, fmt.Sprintf("%d samples, as the index has", s.Samples), fmt.Sprint(word))
			case at == 0:
				continue
			case int64(word) < before || int64(word) > s.Raw.Bytes:
				return nil, wrong(4*at, fmt.Sprintf("an offset from %d to %d", before, s.Raw.Bytes), fmt.Sprint(word))
			}
			out, before = append(out, word), int64(word)
		}
	}
	if before != s.Raw.Bytes {
		return nil, wrong(4*(words-1), fmt.Sprintf("the end of the shard, %d", s.Raw.Bytes), fmt.Sprint(before))
	}
	return out, nil
}
