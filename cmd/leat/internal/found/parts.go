package found

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/images"
)

// A part is what a sample has under a name, in formats that say nothing of its type: encoded
// pictures, numbers as text, or bytes.
type part struct {
	name   string
	kind   partKind
	seen   int // samples that have it
	most   int // bytes of the longest
	number bool
	list   loader.Field // of a feature that is a list of numbers
}

type partKind int

const (
	asBytes partKind = iota
	asPicture
	asNumber
)

// parts are those of samples, in the order in which they turn up.
type parts struct {
	all     []*part
	samples int
}

// sample is called for each sample that is looked at, before its parts are added.
func (p *parts) sample() { p.samples++ }

// add looks at a part of a sample.
func (p *parts) add(name string, data []byte) {
	at := p.find(name)
	if at == nil {
		at = &part{name: name, kind: asBytes, number: true}
		if isPicture(data) {
			at.kind = asPicture
		}
		p.all = append(p.all, at)
	}
	at.seen++
	at.most = max(at.most, len(data))
	if _, err := strconv.ParseInt(strings.TrimSpace(string(data[:min(len(data), 24)])), 10, 64); err != nil || len(data) > 24 {
		at.number = false
	}
}

func (p *parts) find(name string) *part {
	for _, at := range p.all {
		if at.name == name {
			return at
		}
	}
	return nil
}

// common are the parts that all samples have; the others are told to the Set.
func (p *parts) common(s *Set) []*part {
	var all []*part
	for _, at := range p.all {
		if at.seen < p.samples {
			s.note("%s is left out: %d of the first %d samples have it", at.name, at.seen, p.samples)
			continue
		}
		if at.kind == asBytes && at.number {
			at.kind = asNumber
		}
		all = append(all, at)
	}
	return all
}

// room is a size for text of which the longest seen has n bytes.
func room(n int) int {
	return max(64, 1<<bits.Len(uint(2*n-1)))
}

// field is the field that a part becomes.
func (p *part) field(drawer *images.Drawer) loader.Field {
	switch p.kind {
	case asPicture:
		return drawer.Field(p.name)
	case asNumber:
		return loader.Field{Name: p.name, DType: dtype.Int64}
	}
	return text(p.name, p.most)
}

// text is a field for bytes of which the longest seen are n.
func text(name string, n int) loader.Field {
	return loader.Field{Name: name, DType: dtype.Uint8, Shape: []int{room(n)}, Ragged: &loader.Ragged{}}
}

// literal is an entry of a list of fields as Go.
func (p *part) literal(f loader.Field) string {
	if p.kind == asPicture {
		return fmt.Sprintf("\tdrawer.Field(%q),\n", p.name)
	}
	return fmt.Sprintf("\t{%s},\n", fieldCode(f))
}

// drawn reports whether one of the parts is a picture.
func drawn(all []*part) bool {
	for _, p := range all {
		if p.kind == asPicture {
			return true
		}
	}
	return false
}

// drawerCode makes what pictures are drawn by, if there are some.
func drawerCode(all []*part) string {
	if !drawn(all) {
		return ""
	}
	return "drawer, err := images.NewDrawer(images.Options{Height: 224, Width: 224})\ncheck\n"
}
