package tar

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The header of a file is one block, as POSIX.1-1988 describes it (ustar); before it there may be
// others with what doesn't fit, of POSIX.1-2001 (pax) or of GNU tar.
const blockBytes = 512

type block [blockBytes]byte

func (b *block) name() []byte   { return b[:100] }
func (b *block) size() []byte   { return b[124:136] }
func (b *block) kind() byte     { return b[156] }
func (b *block) magic() []byte  { return b[257:265] }
func (b *block) prefix() []byte { return b[345:500] }

func (b *block) isZero() bool { return *b == block{} }

// summed reports whether the checksum is right: the sum of all bytes, with blanks in its own
// place. Some programs have summed signed bytes.
func (b *block) summed() bool {
	const at, end = 148, 156
	want, err := octal(b[at:end])
	if err != nil {
		return false
	}
	var unsigned, signed int64
	for i, c := range b {
		if i >= at && i < end {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return want == unsigned || want == signed
}

var errNumber = errors.New("no number")

// octal is a number as text, ended by a blank or a zero byte.
func octal(b []byte) (int64, error) {
	b = bytes.Trim(b, " \x00")
	if len(b) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(b), 8, 63)
	if err != nil {
		return 0, errNumber
	}
	return int64(n), nil
}

// number is octal, or GNU's binary form for what does not fit: the first bit set, then the number
// with the highest byte first.
func number(b []byte) (int64, error) {
	if b[0]&0x80 == 0 {
		return octal(b)
	}
	if b[0] != 0x80 { // negative, or larger than there can be
		return 0, errNumber
	}
	n := uint64(0)
	for _, c := range b[1:] {
		if n >= 1<<55 {
			return 0, errNumber
		}
		n = n<<8 | uint64(c)
	}
	return int64(n), nil
}

// text is what stands before the first zero byte.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// path is the whole name.
func (b *block) path() string {
	name := text(b.name())
	// GNU's own format has other things where POSIX has the prefix.
	if prefix := text(b.prefix()); prefix != "" && string(b.magic()) == "ustar\x0000" {
		return prefix + "/" + name
	}
	return name
}

// extended is what the blocks before a header say of it.
type extended struct {
	path    string
	size    int64
	hasSize bool
}

// pax reads records of the form "12 key=value\n", whose number is their length.
func (e *extended) pax(data []byte) error {
	for len(data) > 0 {
		digits, _, ok := bytes.Cut(data, []byte(" "))
		n, err := strconv.ParseUint(string(digits), 10, 31)
		if !ok || err != nil || int64(n) > int64(len(data)) || n < uint64(len(digits))+3 || data[n-1] != '\n' {
			return fmt.Errorf("a record %.20q", data)
		}
		key, value, ok := strings.Cut(string(data[len(digits)+1:n-1]), "=")
		if !ok || strings.IndexByte(value, 0) >= 0 && key == "path" {
			return fmt.Errorf("a record %.20q", data)
		}
		data = data[n:]
		switch {
		case key == "path":
			e.path = value
		case key == "size":
			size, err := strconv.ParseUint(value, 10, 63)
			if err != nil {
				return fmt.Errorf("size %.20q", value)
			}
			e.size, e.hasSize = int64(size), true
		case strings.HasPrefix(key, "GNU.sparse."):
			return errors.New("a sparse file")
		}
	}
	return nil
}
