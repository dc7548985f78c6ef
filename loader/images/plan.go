package images

import (
	"fmt"
	"strings"
)

// Plan is what Open has found, and what becomes of it.
type Plan struct {
	// Folder is its path.
	Folder string
	// Classes are the classes, by label.
	Classes []Class
	// Pictures is how many there are.
	Pictures int
	// Strays is the number of files that are left out, because they are in no class or have
	// no picture's name, and Stray the first 100 of them, from the folder on.
	Strays int
	Stray  []string
	// Decoder names what decodes.
	Decoder string
}

// Class is one of a Plan.
type Class struct {
	Name     string
	Pictures int
}

// Plan tells what was found.
func (d *Dataset) Plan() Plan {
	p := Plan{Folder: d.folder.path, Pictures: d.Len(), Strays: d.folder.strays, Stray: d.folder.stray}
	before := 0
	for i, name := range d.classes {
		p.Classes = append(p.Classes, Class{Name: name, Pictures: d.ends[i] - before})
		before = d.ends[i]
	}
	p.Decoder = fmt.Sprintf("%T", d.drawer.options.Decoder)
	if named, ok := d.drawer.options.Decoder.(fmt.Stringer); ok {
		p.Decoder = named.String()
	}
	return p
}

// String is the plan for people, in a few lines.
func (p Plan) String() string {
	const most = 10
	var b strings.Builder
	classes := "1 class"
	if n := len(p.Classes); n != 1 {
		classes = fmt.Sprintf("%d classes", n)
	}
	fmt.Fprintf(&b, "%s: %d pictures of %s, decoded by %s\n", p.Folder, p.Pictures, classes, p.Decoder)
	for i, c := range p.Classes {
		if i == most {
			fmt.Fprintf(&b, "  and %d classes more\n", len(p.Classes)-most)
			break
		}
		fmt.Fprintf(&b, "  %d %s: %d\n", i, c.Name, c.Pictures)
	}
	if p.Strays > 0 {
		fmt.Fprintf(&b, "files left out: %d\n", p.Strays)
	}
	for i, name := range p.Stray {
		if i == most {
			fmt.Fprintf(&b, "  and %d more\n", p.Strays-most)
			break
		}
		fmt.Fprintf(&b, "  %s\n", name)
	}
	return b.String()
}
