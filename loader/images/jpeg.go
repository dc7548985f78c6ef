package images

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// mostScans is how many scans a JPEG may have. Each takes time in proportion to the whole
// picture, however few bytes it has; encoders make about ten.
const mostScans = 200

// scans refuses a JPEG that was made to take long.
func scans(data []byte) error {
	begin := []byte{0xff, 0xda}
	if bytes.Count(data, begin) <= mostScans {
		return nil
	}
	// Telephones put a film behind a picture, in which these bytes come by chance.
	n := 0
	for marker := range markers(data) {
		if marker == begin[1] {
			n++
		}
	}
	if n > mostScans {
		return fmt.Errorf("jpeg: %d scans, want at most %d", n, mostScans)
	}
	return nil
}

// markers ranges over the markers up to the picture's end, as the standard decoder finds them:
// with what stands between segments passed over.
func markers(data []byte) func(yield func(marker byte) bool) {
	return func(yield func(byte) bool) {
		for rest := data[min(len(data), 2):]; ; {
			at := bytes.IndexByte(rest, 0xff)
			if at < 0 || at+1 == len(rest) {
				return
			}
			marker := rest[at+1]
			switch rest = rest[at+1:]; {
			case marker == 0xff: // fill
				continue
			case marker == 0xd9 || !yield(marker):
				return
			case marker == 0 || marker >= 0xd0 && marker <= 0xd7: // in a scan, and without a length
				rest = rest[1:]
				continue
			}
			if len(rest) < 3 {
				return
			}
			size := int(binary.BigEndian.Uint16(rest[1:]))
			rest = rest[min(1+max(size, 2), len(rest)):]
		}
	}
}

// lines looks for a DNL segment, which says behind the first scan how many lines a picture
// has (ITU-T T.81, B.2.5). The standard decoder knows none, and one photograph of ImageNet has
// it.
func lines(data []byte) (height, at int, ok bool) {
	at = bytes.LastIndex(data, []byte{0xff, 0xdc, 0, 4})
	if at < 0 || at+6 > len(data) {
		return 0, 0, false
	}
	return int(binary.BigEndian.Uint16(data[at+4:])), at, true
}

// withLines is data without the segment at a place and with its height in the header, if that
// has none. One that disagrees with the header stays: then the decoder reports it.
func withLines(data []byte, height, at int) []byte {
	frame := -1
	for marker, segment := range segments(data) {
		if marker >= 0xc0 && marker <= 0xc2 && len(segment) >= 5 {
			frame = cap(data) - cap(segment) + 1
			break
		}
	}
	if frame < 0 {
		return data
	}
	stated := int(binary.BigEndian.Uint16(data[frame:]))
	if stated != 0 && stated != height {
		return data
	}
	out := bytes.Clone(data[:at])
	binary.BigEndian.PutUint16(out[frame:], uint16(height))
	return append(out, data[at+6:]...)
}

// segments ranges over the segments of a JPEG before its first scan, without their markers
// and lengths.
func segments(data []byte) func(yield func(marker byte, segment []byte) bool) {
	return func(yield func(byte, []byte) bool) {
		for at := 2; at+4 <= len(data) && data[at] == 0xff; {
			marker := data[at+1]
			if marker == 0xff { // fill
				at++
				continue
			}
			size := int(binary.BigEndian.Uint16(data[at+2:]))
			if marker == 0xda || size < 2 || at+2+size > len(data) || !yield(marker, data[at+4:at+2+size]) {
				return
			}
			at += 2 + size
		}
	}
}
