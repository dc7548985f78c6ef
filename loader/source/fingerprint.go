package source

import (
	"context"
	"encoding/binary"
	"hash"
	"hash/fnv"
	"path/filepath"
	"strings"
)

// Fingerprint is a number for loader.Fingerprinter that tells the data in some files from
// other data. It covers how many files there are, their order, their sizes, and their
// names below the folder that they are all in: copies of the files in other folders or on
// other machines have the same. It doesn't cover contents, so a file that was written
// anew with the same size goes unnoticed; FingerprintVersions sees that.
//
// It asks each source for its Info, one after the other.
func Fingerprint(ctx context.Context, sources []Source) (uint64, error) {
	return fingerprint(ctx, sources, false)
}

// FingerprintVersions is Fingerprint that also covers what the files' versions do. It is
// for what is derived from the files and kept on the same machine, such as a cache: copies
// of the files have another one.
func FingerprintVersions(ctx context.Context, sources []Source) (uint64, error) {
	return fingerprint(ctx, sources, true)
}

func fingerprint(ctx context.Context, sources []Source, versions bool) (uint64, error) {
	h := fnv.New64a()
	number(h, int64(len(sources)))
	shared := folder(sources)
	for _, s := range sources {
		info, err := Stat(ctx, s)
		if err != nil {
			return 0, err
		}
		text(h, filepath.ToSlash(s.Name())[shared:])
		number(h, info.Size)
		if versions {
			text(h, info.Version)
		}
	}
	return h.Sum64(), nil
}

// folder is the length of what the names begin with, up to a slash, all of them.
func folder(sources []Source) int {
	if len(sources) == 0 {
		return 0
	}
	first := filepath.ToSlash(sources[0].Name())
	shared := strings.LastIndexByte(first, '/') + 1
	for _, s := range sources[1:] {
		name := filepath.ToSlash(s.Name())
		for !strings.HasPrefix(name, first[:shared]) {
			shared = strings.LastIndexByte(first[:shared-1], '/') + 1
		}
	}
	return shared
}

func number(h hash.Hash64, n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = h.Write(b[:])
}

// text adds the length too, so that it is clear where a text ends.
func text(h hash.Hash64, s string) {
	number(h, int64(len(s)))
	_, _ = h.Write([]byte(s))
}
