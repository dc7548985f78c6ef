package tar

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
)

// index is where the samples of some files lie.
type index struct {
	keys     []string
	first    []int // of each sample's parts, and one more
	parts    []part
	suffixes []string // each once
	numbers  map[string]uint16
}

// part is a file of a sample.
type part struct {
	suffix     uint16
	header     uint32 // how far before data the first block of it lies
	data, size int64
}

func (p *part) begin() int64 { return p.data - int64(p.header) }

// mostSuffixes is how many there may be in all. Names that are not made for samples have one
// each.
const mostSuffixes = 1 << 12

// scan adds the samples of a file.
func (x *index) scan(ctx context.Context, f source.File, o Options) error {
	in, err := unpack.New(ctx, f, "tar", unpack.Plain)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.Kind() != unpack.Plain {
		return &source.FormatError{
			Format: "tar", File: f.Name(), Offset: 0, Record: -1,
			Want: "a plain tar file, since samples of compressed ones are read in order, by NewStream", Got: "a file compressed by " + string(in.Kind()),
		}
	}
	s := &scanner{in: in}
	g := grouper{options: o, file: f.Name()}
	for {
		e, err := s.find(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		key, suffix, is := g.take(&e)
		if !is {
			continue
		}
		if g.begins {
			x.keys, x.first = append(x.keys, key), append(x.first, len(x.parts))
		}
		if err := g.fits(&e, suffix); err != nil {
			return err
		}
		n, err := x.number(suffix)
		if err != nil {
			return g.failure(&e, suffix, "at most a few suffixes", err.Error())
		}
		x.parts = append(x.parts, part{suffix: n, header: uint32(min(e.data-e.offset, math.MaxUint32)), data: e.data, size: e.size})
	}
}

// number is a suffix's number.
func (x *index) number(suffix string) (uint16, error) {
	if n, ok := x.numbers[suffix]; ok {
		return n, nil
	}
	if len(x.suffixes) == mostSuffixes {
		return 0, fmt.Errorf("%d, such as %s and %s; Options.Key takes names apart", mostSuffixes+1, x.suffixes[0], suffix)
	}
	if x.numbers == nil {
		x.numbers = make(map[string]uint16)
	}
	n := uint16(len(x.suffixes))
	x.suffixes, x.numbers[suffix] = append(x.suffixes, suffix), n
	return n, nil
}

// of are the parts of a sample.
func (x *index) of(i int) []part {
	end := len(x.parts)
	if i+1 < len(x.first) {
		end = x.first[i+1]
	}
	return x.parts[x.first[i]:end]
}

// grouper tells where samples begin.
type grouper struct {
	options Options
	file    string

	begun  bool  // whether an entry was taken
	begins bool  // whether the entry that was taken last is the first of its sample
	number int64 // of that sample in the file, from 1
	key    string
	begin  int64 // where it begins
	seen   []string
}

// take says which sample an entry belongs to, if to any.
func (g *grouper) take(e *entry) (key, suffix string, is bool) {
	if isMeta(e.path) {
		return "", "", false
	}
	key, suffix, is = g.options.Key(e.path)
	if !is {
		return "", "", false
	}
	g.begins = !g.begun || key != g.key
	if g.begins {
		g.begun, g.key, g.begin, g.seen = true, key, e.offset, g.seen[:0]
		g.number++
	}
	return key, suffix, true
}

// fits is the error for a part that its sample has no room for.
func (g *grouper) fits(e *entry, suffix string) error {
	for _, s := range g.seen {
		if s == suffix {
			return g.failure(e, suffix, "each part of a sample once", "another "+e.path)
		}
	}
	g.seen = append(g.seen, suffix)
	if size := e.data + e.size - g.begin; size > g.options.MaxBytes {
		return g.failure(e, suffix, fmt.Sprintf("a sample of at most %d bytes (Options.MaxBytes)", g.options.MaxBytes), fmt.Sprint(size))
	}
	// Parts are told apart by comparing them all.
	const most = 1 << 10
	if len(g.seen) > most {
		return g.failure(e, suffix, fmt.Sprintf("at most %d parts of a sample", most), "one more")
	}
	return nil
}

func (g *grouper) failure(e *entry, suffix, want, got string) error {
	return &source.FormatError{
		Format: "tar", File: g.file, Offset: e.offset, Record: g.number - 1, Field: suffix, Want: want, Got: got,
	}
}
