package tokens

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/source"
)

// An .idx file of Megatron-LM has, all little-endian: these nine bytes, the version, which is
// 1, as 64 bits, the type of the tokens as a byte, the number of sequences and that of
// documents as 64 bits; then for each sequence its length as 32 bits and where it begins in the
// .bin file as 64, for each document the number of its first sequence as 64 bits, and for each
// sequence a byte more if there is more than text.
const (
	megatron     = "MMIDIDX\x00\x00"
	megatronHead = 34
)

// megatronTypes are the types by their codes. 6 and 7 are floats.
var megatronTypes = map[byte]dtype.Type{
	1: dtype.Uint8, 2: dtype.Int8, 3: dtype.Int16, 4: dtype.Int32, 5: dtype.Int64, 8: dtype.Uint16,
}

// pairs has each .idx file say what is in the .bin file of its name, and takes it out.
func (d *Dataset) pairs(ctx context.Context) error {
	var indexes, rest []part
	named := make(map[string]int)
	for _, p := range d.parts {
		start := make([]byte, min(int64(len(megatron)), p.Size()))
		if err := source.ReadFull(ctx, p.File, start, 0); err != nil {
			return err
		}
		if string(start) == megatron {
			indexes = append(indexes, p)
			continue
		}
		named[p.Name()] = len(rest)
		rest = append(rest, p)
	}
	for i := range indexes {
		p := &indexes[i]
		name := strings.TrimSuffix(p.Name(), ".idx") + ".bin"
		at, ok := named[name]
		if !ok {
			return p.wrong(-1, fmt.Sprintf("%s among the files, to which this is the index", name), "no such file")
		}
		if err := p.describe(ctx, &rest[at]); err != nil {
			return err
		}
	}
	d.parts = rest
	var errs []error
	for i := range indexes {
		errs = append(errs, indexes[i].Close())
	}
	return errors.Join(errs...)
}

// describe tells a .bin file what the .idx file says of it, and looks whether the last
// sequence is where the file ends. Windows don't need what is between: the sequences lie one
// behind the other.
func (p *part) describe(ctx context.Context, bin *part) error {
	head := make([]byte, min(megatronHead, p.Size()))
	if err := source.ReadFull(ctx, p.File, head, 0); err != nil {
		return err
	}
	if len(head) < megatronHead {
		return p.wrong(p.Size(), fmt.Sprintf("a head of %d bytes", megatronHead), "the end of the file")
	}
	if version := binary.LittleEndian.Uint64(head[9:]); version != 1 {
		return p.wrong(9, "version 1", fmt.Sprint(version))
	}
	bin.dtype = megatronTypes[head[17]]
	if !bin.dtype.Valid() {
		return p.wrong(17, "a type of integers: 1 to 5 or 8", fmt.Sprint(head[17]))
	}
	sequences, documents := binary.LittleEndian.Uint64(head[18:]), binary.LittleEndian.Uint64(head[26:])
	const most = 1 << 58 // sums below are far from wrapping round
	if sequences > most || documents > most {
		return p.wrong(18, fmt.Sprintf("sequences and documents in a file of %d bytes", p.Size()), fmt.Sprintf("%d and %d", sequences, documents))
	}
	size := megatronHead + 12*sequences + 8*documents
	if have := uint64(p.Size()); have != size && have != size+sequences {
		return p.wrong(18, fmt.Sprintf("%d bytes for %d sequences and %d documents", size, sequences, documents), fmt.Sprintf("%d", have))
	}
	end, err := p.lastEnd(ctx, int64(sequences), int64(bin.dtype.Size()))
	if err != nil {
		return err
	}
	if bin.Size() != end {
		return bin.wrong(-1, fmt.Sprintf("%d bytes, as %s says", end, p.Name()), fmt.Sprint(bin.Size()))
	}
	bin.count = end / int64(bin.dtype.Size())
	return nil
}

// lastEnd is where the last sequence ends in the .bin file.
func (p *part) lastEnd(ctx context.Context, sequences, width int64) (int64, error) {
	if sequences == 0 {
		return 0, nil
	}
	var length [4]byte
	var pointer [8]byte
	if err := source.ReadFull(ctx, p.File, length[:], megatronHead+4*(sequences-1)); err != nil {
		return 0, err
	}
	at := megatronHead + 4*sequences + 8*(sequences-1)
	if err := source.ReadFull(ctx, p.File, pointer[:], at); err != nil {
		return 0, err
	}
	n, begin := int32(binary.LittleEndian.Uint32(length[:])), int64(binary.LittleEndian.Uint64(pointer[:]))
	if n < 0 || begin < 0 || begin%width != 0 || begin > 1<<62 {
		return 0, p.wrong(at, "a last sequence of whole tokens", fmt.Sprintf("%d tokens from byte %d on", n, begin))
	}
	return begin + int64(n)*width, nil
}
