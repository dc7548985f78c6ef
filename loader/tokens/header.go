package tokens

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/source"
)

// What files begin with. Those of llm.c do with one of these numbers, the version and the
// number of tokens, 256 numbers of 32 bits in all.
const (
	gpt2      = 20240520 // version 1, uint16
	llama3    = 20240801 // version 7, uint32
	llmcEval  = 20240522 // questions and their answers, which are no windows
	llmcBytes = 1024

	numpy = "\x93NUMPY"
)

// look finds out what a file is.
func (p *part) look(ctx context.Context, stated dtype.Type) error {
	start := make([]byte, min(12, p.Size()))
	if err := source.ReadFull(ctx, p.File, start, 0); err != nil {
		return err
	}
	if len(start) >= len(numpy) && string(start[:len(numpy)]) == numpy {
		return p.lookNumPy(ctx)
	}
	if len(start) == 12 {
		number, version := binary.LittleEndian.Uint32(start), binary.LittleEndian.Uint32(start[4:])
		switch {
		case number == llmcEval:
			return p.wrong(0, "tokens of a text", "questions with answers, an evaluation file of llm.c")
		case number == gpt2 && version == 1:
			return p.lookLLMC(dtype.Uint16, int32(binary.LittleEndian.Uint32(start[8:])))
		case number == llama3 && version == 7:
			return p.lookLLMC(dtype.Uint32, int32(binary.LittleEndian.Uint32(start[8:])))
		case (number == gpt2 || number == llama3) && version < 256: // else these are tokens
			return p.wrong(4, "version 1 of uint16 or version 7 of uint32 of llm.c's files", fmt.Sprint(version))
		}
	}
	if !stated.Valid() {
		return p.wrong(0, "a header of llm.c or of NumPy, an .idx file of Megatron-LM beside it, or Options.DType for a file without a header",
			fmt.Sprintf("% x in a file of %d bytes", start, p.Size()))
	}
	width := int64(stated.Size())
	p.dtype, p.count = stated, p.Size()/width
	if p.Size()%width != 0 {
		return p.wrong(-1, fmt.Sprintf("whole tokens of %d bytes", width), fmt.Sprintf("%d bytes", p.Size()))
	}
	return nil
}

func (p *part) lookLLMC(t dtype.Type, count int32) error {
	p.dtype, p.offset, p.count = t, llmcBytes, int64(count)
	size := llmcBytes + p.count*int64(t.Size())
	switch {
	case count < 0:
		return p.wrong(8, "a number of tokens", fmt.Sprint(count))
	case p.Size() != size:
		return p.wrong(8, fmt.Sprintf("a file of %d bytes for %d tokens of %v behind the header", size, count, t), fmt.Sprintf("%d bytes", p.Size()))
	}
	return nil
}

func (p *part) lookNumPy(ctx context.Context) error {
	h, err := npy.ReadHeader(ctx, p.File, npy.Options{})
	if err != nil {
		return err
	}
	if len(h.Shape) != 1 || !integer(h.DType) || h.BigEndian && h.DType.Size() > 1 {
		return p.wrong(0, "an array of one dimension of little-endian integers", fmt.Sprintf("%s%v", h.Descr, h.Shape))
	}
	p.dtype, p.offset, p.count = h.DType, h.Offset, int64(h.Shape[0])
	return nil
}
