package idx

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/source"
)

// MaxBytes is the largest size of an array's elements. A small gzip file can claim, and
// deliver, very much more.
const MaxBytes = 4 << 30

// Array is the content of an IDX file.
type Array struct {
	// DType is uint8, int8, int16, int32, float32 or float64.
	DType dtype.Type
	// Shape is the size of each dimension, outermost first. It has at least one.
	Shape []int
	// Data holds the elements, row-major and little-endian, whatever the file's
	// byte order.
	Data []byte
}

// Open reads a file, plain or gzipped. It returns a *source.FormatError if it is not a whole IDX
// file and nothing else, and a *source.Error if it can't be read.
func Open(ctx context.Context, s source.Source) (*Array, error) {
	f, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := read(io.NewSectionReader(source.ReaderAt(ctx, f), 0, f.Size()), f.Size())
	var format *source.FormatError
	if errors.As(err, &format) {
		format.File = s.Name()
	}
	return a, err
}

// Read reads r to its end, plain or gzipped: which of the two is seen by its
// first bytes. Memory grows with the data that arrives, not with what the header
// says is to come.
func Read(r io.Reader) (*Array, error) { return read(r, 0) }

// wrong is an error at an offset of what is read, which has no name yet.
func wrong(at int64, want, got string, err error) *source.FormatError {
	return &source.FormatError{Format: "idx", File: "input", Offset: at, Record: -1, Want: want, Got: got, Err: err}
}

// read is Read of a source of that length, 0 if it is not known.
func read(r io.Reader, length int64) (*Array, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	in := &reader{r: buffered, length: length}
	if magic, err := buffered.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, in.failure("a gzip header", err)
		}
		in.r, in.length = unzipped, 0
	}
	a, size, err := in.header()
	if err != nil {
		return nil, err
	}
	if a.Data, err = in.elements(size, a.DType.Size()); err != nil {
		return nil, err
	}
	return a, nil
}

// reader counts what it reads.
type reader struct {
	r      io.Reader
	offset int64
	length int64 // of all that there is to read, 0 if it is not known
}

// failure is the error for a read that failed: the format's fault if the data
// ended or could not be decompressed, the source's own otherwise.
func (in *reader) failure(want string, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return wrong(in.offset, want, "the end of the file", err)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return wrong(in.offset, want, "corrupt gzip data: "+err.Error(), err)
	}
	return err
}

// types are the element types by their code in the header. There is no 0x0a.
var types = map[byte]dtype.Type{
	0x08: dtype.Uint8, 0x09: dtype.Int8, 0x0b: dtype.Int16,
	0x0c: dtype.Int32, 0x0d: dtype.Float32, 0x0e: dtype.Float64,
}

// header reads two zeros, the type, the number of dimensions, and each as a
// big-endian 32-bit number. It returns the size of the elements in bytes.
func (in *reader) header() (a *Array, size int64, err error) {
	var magic [4]byte
	if err := in.full(magic[:], "the four bytes 00 00, type, dimensions"); err != nil {
		return nil, 0, err
	}
	element, known := types[magic[2]]
	switch {
	case magic[0] != 0 || magic[1] != 0:
		return nil, 0, wrong(0, "00 00", fmt.Sprintf("% x", magic[:2]), nil)
	case !known:
		return nil, 0, wrong(2, "type 08, 09, 0b, 0c, 0d or 0e", fmt.Sprintf("%02x", magic[2]), nil)
	case magic[3] == 0:
		return nil, 0, wrong(3, "1 dimension or more", "0", nil)
	}
	a = &Array{DType: element, Shape: make([]int, magic[3])}
	product, empty := uint64(element.Size()), false
	for i := range a.Shape {
		at := in.offset
		var word [4]byte
		if err := in.full(word[:], fmt.Sprintf("dimension %d of %d", i+1, len(a.Shape))); err != nil {
			return nil, 0, err
		}
		dim := binary.BigEndian.Uint32(word[:])
		if uint64(dim) > math.MaxInt {
			return nil, 0, wrong(at, "a dimension that fits an int", fmt.Sprint(dim), nil)
		}
		a.Shape[i] = int(dim)
		empty = empty || dim == 0
		high, low := bits.Mul64(product, uint64(max(dim, 1)))
		if product = low; high != 0 || low > MaxBytes {
			product = MaxBytes + 1
		}
	}
	if empty {
		return a, 0, nil
	}
	const most uint64 = min(MaxBytes, math.MaxInt) // 32-bit machines have less
	if product > most {
		return nil, 0, wrong(in.offset, fmt.Sprintf("at most %d bytes of elements", most), fmt.Sprintf("dimensions %v", a.Shape), nil)
	}
	return a, int64(product), nil
}

// full fills b.
func (in *reader) full(b []byte, want string) error {
	n, err := io.ReadFull(in.r, b)
	in.offset += int64(n)
	if err != nil {
		return in.failure(want, err)
	}
	return nil
}

// step is how much is read at a time: elements are turned round while the processor's
// cache has them.
const step = 1 << 20

// elements reads size bytes and makes sure that nothing follows.
func (in *reader) elements(size int64, width int) ([]byte, error) {
	want := fmt.Sprintf("%d bytes of elements in all", size)
	var data []byte
	for int64(len(data)) < size {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, in.room(int64(len(data)), size)), data...)
		}
		next := data[len(data):min(len(data)+step, cap(data))]
		if err := in.full(next, want); err != nil {
			return nil, err
		}
		littleEndian(next, width)
		data = data[:len(data)+len(next)]
	}
	var extra [1]byte
	switch n, err := io.ReadFull(in.r, extra[:]); {
	case n > 0:
		return nil, wrong(in.offset, "the end of the file", "more data", nil)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrHeader):
		// A gzip stream whose own end is cut off, or that something follows.
		return nil, wrong(in.offset, "the end of the file", "a broken gzip trailer", err)
	case err != io.EOF:
		return nil, in.failure("the end of the file", err)
	}
	return data, nil
}

// room is how much memory to have when there are have bytes of the size that the header
// promises. It is exactly size once that is believed: if the file is as long as it says
// or, where nobody knows how long the data is, because it is compressed or no file, when
// a sixteenth of it has come. Before that it grows with what has come, in whole steps.
// So a header that lies costs 16 times the data that is there, and one that doesn't a
// copy of a sixteenth.
func (in *reader) room(have, size int64) int64 {
	const share = 16
	if in.offset-have+size <= in.length || have >= size/share {
		return size
	}
	steps := max(1, min(2*have, size/share+step-1)/step)
	return min(size, steps*step)
}

// littleEndian turns the bytes of each element round.
func littleEndian(data []byte, width int) {
	big, little := binary.BigEndian, binary.LittleEndian
	switch width {
	case 2:
		for ; len(data) >= 2; data = data[2:] {
			little.PutUint16(data, big.Uint16(data))
		}
	case 4:
		for ; len(data) >= 4; data = data[4:] {
			little.PutUint32(data, big.Uint32(data))
		}
	case 8:
		for ; len(data) >= 8; data = data[8:] {
			little.PutUint64(data, big.Uint64(data))
		}
	}
}
