package images

import (
	"bytes"
	"encoding/binary"
	"image"
)

// orientation is how a picture lies, by the tag of that name in its EXIF data: 1 is upright. The
// others, up to 8, turn and mirror it. What can't be understood is 1, as it is elsewhere:
// cameras write much that is not to the standard.
func orientation(data []byte, format string) orient {
	switch format {
	case "jpeg":
		for marker, segment := range segments(data) {
			if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); marker == 0xe1 && ok {
				return tag(tiff)
			}
		}
	case "png":
		for rest := data[min(len(data), 8):]; len(rest) >= 12; {
			size, name := int64(binary.BigEndian.Uint32(rest)), string(rest[4:8])
			if size > int64(len(rest)-12) || name == "IDAT" {
				break
			}
			if name == "eXIf" {
				return tag(rest[8 : 8+size])
			}
			rest = rest[12+size:]
		}
	case "webp":
		for name, chunk := range riff(data) {
			if name == "EXIF" {
				tiff, _ := bytes.CutPrefix(chunk, []byte("Exif\x00\x00"))
				return tag(tiff)
			}
		}
	}
	return 1
}

// tag looks for the orientation in the first directory of a TIFF file.
func tag(tiff []byte) orient {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(tiff) < 8:
		return 1
	case string(tiff[:4]) == "MM\x00*":
		order = binary.BigEndian
	case string(tiff[:4]) != "II*\x00":
		return 1
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 1
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			break
		}
		const orientationTag, short = 0x0112, 3
		if order.Uint16(entries) == orientationTag && order.Uint16(entries[2:]) == short {
			if o := order.Uint16(entries[8:]); o >= 1 && o <= 8 {
				return orient(o)
			}
			break
		}
		entries = entries[12:]
	}
	return 1
}

// orient is a value of the tag. A pixel that is shown at (x, y) is stored at (x, y), or at
// (y, x) if the picture is turned, and counted from the other end where it is mirrored.
type orient uint8

func (o orient) turned() bool   { return o >= 5 }
func (o orient) mirrorsX() bool { return o == 2 || o == 3 || o == 7 || o == 8 }
func (o orient) mirrorsY() bool { return o == 3 || o == 4 || o == 6 || o == 7 }
func (o orient) shown(stored image.Point) image.Point {
	if o.turned() {
		return image.Pt(stored.Y, stored.X)
	}
	return stored
}

// stored is where the pixels of a window lie that is given as it is shown.
func (o orient) stored(window image.Rectangle, size image.Point) image.Rectangle {
	if o.turned() {
		window = image.Rect(window.Min.Y, window.Min.X, window.Max.Y, window.Max.X)
	}
	if o.mirrorsX() {
		window.Min.X, window.Max.X = size.X-window.Max.X, size.X-window.Min.X
	}
	if o.mirrorsY() {
		window.Min.Y, window.Max.Y = size.Y-window.Max.Y, size.Y-window.Min.Y
	}
	return window
}
