package main

import (
	"fmt"
	"hash/crc32"

	"github.com/leat-go/leat/examples/frames/film"
)

// A digest stands for all bytes of a result: a checksum of each strip.
type digest [film.MaxStrips]uint32

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (b *bench) digest(p planes) (d digest) {
	n := b.planeBytes() / b.film.Strips()
	b.strips(func(strip int) {
		for _, plane := range p {
			d[strip] = crc32.Update(d[strip], castagnoli, plane[strip*n:][:n])
		}
	})
	return d
}

// compare finds the first frame that a way made otherwise than the first way did.
func compare(all [][]digest) error {
	for i := range all {
		for frame, got := range all[i] {
			if want := all[0][frame]; got != want {
				return fmt.Errorf("frame %d: the result of %s is not that of %s", frame, ways[i].name, ways[0].name)
			}
		}
	}
	return nil
}
