package tar

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// Part is one file of a sample.
type Part struct {
	// Suffix is what its name has behind the key, in lower case.
	Suffix string
	// Data are its bytes.
	Data []byte
}

// Sample is some files with the same key.
type Sample struct {
	// Key is what their names have in common.
	Key string
	// Parts are in the order in which they lie in the tar file.
	Parts []Part
	// Origin is where the first of them begins, and Record the sample's number in the file.
	Origin loader.Origin
}

// Get is the data of the first part that has one of the suffixes:
//
//	picture, err := s.Get("jpg", "jpeg", "png")
//
// It is as long valid as the Sample. The error is a *source.FormatError, which lists what the
// sample has. Pickles of Python are refused, by their suffix: pickle, pkl, pyd, pth and pt. They are
// programs that run when they are read, and no data. Who wants their bytes finds them in Parts.
func (s *Sample) Get(suffixes ...string) ([]byte, error) {
	for _, suffix := range suffixes {
		for _, p := range s.Parts {
			if p.Suffix != suffix {
				continue
			}
			if isPickle(suffix) {
				return nil, s.failure(suffix, "a format that holds data alone", "a pickle, which is a program", nil)
			}
			return p.Data, nil
		}
	}
	var has []string
	for _, p := range s.Parts {
		has = append(has, p.Suffix)
	}
	return nil, s.failure("", "a part "+strings.Join(suffixes, " or "), fmt.Sprintf("key %s with %s", s.Key, strings.Join(has, ", ")), nil)
}

// Int is the whole number that a part has as text, as WebDataset writes the number of a class
// to cls.
func (s *Sample) Int(suffix string) (int64, error) {
	text, err := s.Get(suffix)
	if err != nil {
		return 0, err
	}
	text = bytes.TrimSpace(text)
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, s.failure(suffix, "a whole number", fmt.Sprintf("%.20q", text), err)
	}
	return n, nil
}

func isPickle(suffix string) bool {
	last := suffix[strings.LastIndexByte(suffix, '.')+1:]
	return slices.Contains([]string{"pickle", "pkl", "pyd", "pth", "pt"}, last)
}

func (s *Sample) failure(field, want, got string, err error) error {
	return &source.FormatError{
		Format: "tar", File: s.Origin.File, Offset: s.Origin.Offset, Record: s.Origin.Record,
		Field: field, Want: want, Got: got, Err: err,
	}
}
