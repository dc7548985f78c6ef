package fuzz

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

const (
	raggedPad      = 17
	raggedMultiple = 4
)

// ragged is the field whose samples differ in length, each of 0 to Width pairs.
func (d data) ragged() loader.Field {
	f := loader.Field{Name: "ragged", DType: dtype.Uint8, Shape: []int{d.Width, 2}}
	if d.Ragged == "packed" {
		f.Ragged = &loader.Ragged{Offsets: "offsets"}
	} else {
		f.Ragged = &loader.Ragged{Multiple: raggedMultiple, Pad: raggedPad, Length: "lengths", Mask: "mask"}
	}
	return f
}

// names are those of all fields of a batch.
func (d data) names() (names []string) {
	for _, f := range d.fields() {
		names = append(names, f.Name)
	}
	switch d.Ragged {
	case "padded":
		names = append(names, "lengths", "mask")
	case "packed":
		names = append(names, "offsets")
	}
	return names
}

// pairs is a sample's ragged value.
func (d data) pairs(index, epoch int) []byte {
	b := make([]byte, 2*((index*5+epoch*3)%(d.Width+1)))
	fill(b, index, epoch+1)
	return b
}

// writeRagged writes it in one of the two ways.
func (s *source) writeRagged(index int, row *loader.Row) error {
	if s.Ragged == "" {
		return nil
	}
	pairs := s.pairs(index, row.Epoch())
	if index%2 == 0 {
		return loader.Write(row, "ragged", pairs...)
	}
	if len(pairs) > 0 {
		copy(row.Bytes("ragged"), pairs)
	}
	return row.SetLen("ragged", len(pairs)/2)
}

// compareRagged compares the ragged field, and those that are added for it, with what the
// samples make.
func (d data) compareRagged(c contents, samples []int, epoch int) error {
	if d.Ragged == "" {
		return nil
	}
	longest := 0
	for _, index := range samples {
		longest = max(longest, len(d.pairs(index, epoch))/2)
	}
	longest = min((longest+raggedMultiple-1)/raggedMultiple*raggedMultiple, d.Width)
	var pairs, lengths, mask []byte
	offsets, total := make([]byte, 4), 0
	for _, index := range samples {
		own := d.pairs(index, epoch)
		n := len(own) / 2
		total += n
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(total))
		lengths = binary.LittleEndian.AppendUint32(lengths, uint32(n))
		mask = append(append(mask, bytes.Repeat([]byte{1}, n)...), make([]byte, longest-n)...)
		pairs = append(pairs, own...)
		if d.Ragged == "padded" {
			pairs = append(pairs, bytes.Repeat([]byte{raggedPad}, 2*(longest-n))...)
		}
	}
	want := map[string][]byte{"ragged": pairs, "lengths": lengths, "mask": mask}
	if d.Ragged == "packed" {
		want = map[string][]byte{"ragged": pairs, "offsets": offsets}
	}
	for name, b := range want {
		if is := c(name); !bytes.Equal(is, b) {
			return fmt.Errorf("field %s of samples %v holds %x, want %x", name, samples, is, b)
		}
	}
	return nil
}
