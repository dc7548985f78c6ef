package kernels

import (
	"encoding/binary"

	"github.com/leat-go/leat/device"
)

// Checksum writes the checksum of in, the same as ChecksumOf gives, to out: one
// uint64, aligned to 8. It shows that a batch is wrong: that bytes were changed, swapped,
// doubled or left over from another batch.
func Checksum(s *device.Stream, out, in device.View) error {
	var m mistakes
	m.length("out", out, 1, 8, "the checksum")
	m.apart("out", out, "in", in)
	m.view(s, "out", out, 8)
	m.view(s, "in", in, 1)
	if err := m.err("Checksum"); err != nil {
		return err
	}
	// The blocks add to out as they finish, so it must hold 0 before any starts.
	if err := s.Memset(out, 0); err != nil || in.Size() == 0 {
		return err
	}
	l := device.Launch{Kernel: checksum}
	grid(&l, (in.Size()+7)/8)
	out.InOut(&l.Args)
	in.In(&l.Args)
	l.Args.AddInt64(in.Size())
	return s.Launch(&l)
}

// ChecksumOf is the checksum of b: the sum, modulo 2^64, of each 8-byte word
// scrambled with its place. Since a word's scrambling is a bijection, a change of
// any one word always shows; other changes escape once in 2^64. The bytes after
// the last whole word count as a word with zeros above; the length, scrambled at
// place 0, is added, so that such zeros are told from real ones. Of no bytes it is 0.
func ChecksumOf(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	sum, place := scramble(uint64(len(b)), 0), uint64(0)
	// Four at a time keep the multipliers busy: it is nearly twice as fast.
	for ; len(b) >= 32; b = b[32:] {
		w := b[:32]
		sum += scramble(word(w), place+1) + scramble(word(w[8:]), place+2) +
			scramble(word(w[16:]), place+3) + scramble(word(w[24:]), place+4)
		place += 4
	}
	for ; len(b) >= 8; b = b[8:] {
		place++
		sum += scramble(word(b), place)
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		place++
		sum += scramble(word(tail[:]), place)
	}
	return sum
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// scramble is the finaliser of SplitMix64 on a word and its place.
func scramble(w, place uint64) uint64 { return mix(w ^ place*golden) }

// golden is 2^64 over the golden ratio, SplitMix64's step between states.
const golden = 0x9e3779b97f4a7c15

// mix is SplitMix64's finaliser, a bijection.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

var checksum = &device.Kernel{Name: "checksum", Module: module, Go: func(a *device.Args) {
	device.Elements[uint64](a, 0)[0] += ChecksumOf(a.Bytes(1))
}}
