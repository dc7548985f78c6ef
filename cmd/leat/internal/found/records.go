package found

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/images"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tar"
	"github.com/leat-go/leat/loader/tfrecord"
)

func openTar(ctx context.Context, s *Set, o Options) error {
	shards, err := tar.Open(ctx, s.Files, tar.Options{})
	if err != nil {
		return err
	}
	s.close = shards.Close
	var p parts
	for i := range min(shards.Len(), o.Probe) {
		sample, err := shards.Read(ctx, i)
		if err != nil {
			continue // it is a problem of that sample, found when it is read
		}
		p.sample()
		for _, part := range sample.Parts {
			if _, err := sample.Get(part.Suffix); err == nil { // pickles are refused
				p.add(part.Suffix, part.Data)
			} else if i == 0 {
				s.note("%s is left out: %v", part.Suffix, err)
			}
		}
	}
	all := p.common(s)
	drawer, err := images.NewDrawer(images.Options{Height: o.Side, Width: o.Side})
	if err != nil {
		return err
	}
	var fields []loader.Field
	for _, part := range all {
		fields = append(fields, part.field(drawer))
	}
	s.code = code{imports: []string{"dtype", "loader/source", "loader/tar"}, lines: tarCode(s, all, fields)}
	s.code.trim()
	return s.opened(located{shards.Dataset(fields, func(_ context.Context, sample *tar.Sample, row *loader.Row) error {
		for _, part := range all {
			data, err := sample.Get(part.name)
			if err == nil && part.kind == asNumber {
				var n int64
				if n, err = sample.Int(part.name); err == nil {
					err = loader.Write(row, part.name, n)
				}
			} else if err == nil {
				err = part.write(drawer, row, sample.Key, data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}), shards}, shards.Close)
}

// located is a dataset with the origins of what it was made of.
type located struct {
	loader.Dataset
	loader.Locator
}

// write writes a part that is no number.
func (p *part) write(drawer *images.Drawer, row *loader.Row, from string, data []byte) error {
	if p.kind == asPicture {
		return drawer.Draw(row, p.name, from, data)
	}
	return loader.Write(row, p.name, data...)
}

func tarCode(s *Set, all []*part, fields []loader.Field) string {
	var b strings.Builder
	b.WriteString(s.files() + "shards, err := tar.Open(ctx, files, tar.Options{})\ncheck\ndefer shards.Close()\n" + drawerCode(all))
	b.WriteString("fields := []loader.Field{\n")
	for i, p := range all {
		b.WriteString(p.literal(fields[i]))
	}
	b.WriteString("}\ndata := shards.Dataset(fields, func(_ context.Context, s *tar.Sample, row *loader.Row) error {\n")
	for i, p := range all {
		last := i == len(all)-1
		get := "Get"
		if p.kind == asNumber {
			get = "Int"
		}
		fmt.Fprintf(&b, "\tpart%d, err := s.%s(%q)\n\tif err != nil {\n\t\treturn err\n\t}\n", i, get, p.name)
		call := fmt.Sprintf("loader.Write(row, %q, part%d)", p.name, i)
		switch p.kind {
		case asPicture:
			call = fmt.Sprintf("drawer.Draw(row, %q, s.Key, part%d)", p.name, i)
		case asBytes:
			call = fmt.Sprintf("loader.Write(row, %q, part%d...)", p.name, i)
		}
		if last {
			fmt.Fprintf(&b, "\treturn %s\n", call)
		} else {
			fmt.Fprintf(&b, "\tif err := %s; err != nil {\n\t\treturn err\n\t}\n", call)
		}
	}
	b.WriteString("})")
	return b.String()
}

// trim leaves out imports that the lines don't speak of, and adds those that they do.
func (c *code) trim() {
	var used []string
	for _, path := range append(c.imports, "loader/images") {
		if strings.Contains(c.lines, path[strings.LastIndex(path, "/")+1:]+".") {
			used = append(used, path)
		}
	}
	c.imports = used
}

func openTFRecord(ctx context.Context, s *Set, o Options) error {
	records, err := tfrecord.Open(ctx, s.Files, tfrecord.Options{})
	if err != nil {
		return err
	}
	s.close = records.Close
	features, longest, err := probeExamples(ctx, s, records, o)
	if err != nil {
		return err
	}
	open := s.files() + "records, err := tfrecord.Open(ctx, files, tfrecord.Options{})\ncheck\ndefer records.Close()\n"
	s.code = code{imports: []string{"dtype", "loader/source", "loader/tfrecord"}}
	if features == nil {
		s.note("the records are no tf.train.Examples: their bytes are shown")
		fields := []loader.Field{text("record", longest)}
		s.code.lines = open + fieldsCode(fields) + `data := records.Dataset(fields, func(_ context.Context, record []byte, row *loader.Row) error {
	return loader.Write(row, "record", record...)
})`
		s.code.trim()
		return s.opened(located{records.Dataset(fields, func(_ context.Context, record []byte, row *loader.Row) error {
			return loader.Write(row, "record", record...)
		}), records}, records.Close)
	}
	return s.examples(records, features, open, o)
}

// examples opens records whose features are known. Those without pictures need no function.
func (s *Set) examples(records *tfrecord.Records, features []*part, open string, o Options) error {
	drawer, err := images.NewDrawer(images.Options{Height: o.Side, Width: o.Side})
	if err != nil {
		return err
	}
	var fields []loader.Field
	var literals string
	for _, p := range features {
		f := p.field(drawer)
		if p.kind == asNumber {
			f = p.list
		}
		fields = append(fields, f)
		literals += p.literal(f)
	}
	open += drawerCode(features) + "fields := []loader.Field{\n" + literals + "}\n"
	if !drawn(features) {
		s.code.lines = open + "data := records.Examples(fields)"
		s.code.trim()
		return s.opened(located{records.Examples(fields), records}, records.Close)
	}
	s.code.lines = open + examplesCode(features)
	s.code.trim()
	return s.opened(located{records.Dataset(fields, func(_ context.Context, record []byte, row *loader.Row) error {
		var e tfrecord.Example
		if err := e.Parse(record); err != nil {
			return err
		}
		for _, p := range features {
			if p.kind != asPicture {
				err = e.Write(row, p.name)
			} else if data, wrong := e.Bytes(p.name); wrong != nil {
				err = wrong
			} else {
				err = drawer.Draw(row, p.name, p.name, data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}), records}, records.Close)
}

func examplesCode(features []*part) string {
	var b strings.Builder
	b.WriteString("data := records.Dataset(fields, func(_ context.Context, record []byte, row *loader.Row) error {\n\tvar e tfrecord.Example\n\tif err := e.Parse(record); err != nil {\n\t\treturn err\n\t}\n")
	for i, p := range features {
		if p.kind != asPicture {
			fmt.Fprintf(&b, "\tif err := e.Write(row, %q); err != nil {\n\t\treturn err\n\t}\n", p.name)
			continue
		}
		fmt.Fprintf(&b, "\tpicture%d, err := e.Bytes(%q)\n\tif err != nil {\n\t\treturn err\n\t}\n\tif err := drawer.Draw(row, %q, %q, picture%d); err != nil {\n\t\treturn err\n\t}\n", i, p.name, p.name, p.name, i)
	}
	b.WriteString("\treturn nil\n})")
	return b.String()
}

// probeExamples looks at the first records. Without features they are no Examples.
func probeExamples(ctx context.Context, s *Set, records *tfrecord.Records, o Options) (features []*part, longest int, err error) {
	var p parts
	lengths := map[string][2]int{}
	kinds := map[string]tfrecord.Kind{}
	var record []byte
	for i := range min(records.Len(), o.Probe) {
		record, err = records.Append(ctx, record[:0], i)
		if unfit := (*source.FormatError)(nil); errors.As(err, &unfit) {
			continue // a problem of that record, found when it is read
		} else if err != nil {
			return nil, 0, err
		}
		longest = max(longest, len(record))
		var e tfrecord.Example
		if err := e.Parse(record); err != nil || len(e.Names()) == 0 {
			return nil, longest, nil
		}
		p.sample()
		for _, name := range e.Names() {
			kinds[name] = e.Kind(name)
			n, first, err := listOf(&e, name)
			if err != nil {
				return nil, longest, nil
			}
			p.add(name, first)
			if l, ok := lengths[name]; ok {
				lengths[name] = [2]int{min(l[0], n), max(l[1], n)}
			} else {
				lengths[name] = [2]int{n, n}
			}
		}
	}
	for _, f := range p.common(s) {
		l := lengths[f.name]
		switch kinds[f.name] {
		case tfrecord.None:
			s.note("%s is left out: it has no list", f.name)
			continue
		case tfrecord.Bytes:
			if l != [2]int{1, 1} {
				s.note("%s is left out: it has %d to %d byte strings, want one", f.name, l[0], l[1])
				continue
			}
			if f.kind == asNumber {
				f.kind = asBytes // a string that looks like a number is one
			}
		case tfrecord.Float:
			f.kind, f.list = asNumber, list(f.name, dtype.Float32, l)
		case tfrecord.Int64:
			f.kind, f.list = asNumber, list(f.name, dtype.Int64, l)
		}
		features = append(features, f)
	}
	return features, longest, nil
}

// listOf is the length of a feature's list and, of byte strings, the first.
func listOf(e *tfrecord.Example, name string) (n int, first []byte, err error) {
	switch e.Kind(name) {
	case tfrecord.Bytes:
		all, err := e.AppendBytes(nil, name)
		if len(all) > 0 {
			first = all[0]
		}
		return len(all), first, err
	case tfrecord.Float:
		all, err := e.AppendFloats(nil, name)
		return len(all), nil, err
	case tfrecord.Int64:
		all, err := e.AppendInts(nil, name)
		return len(all), nil, err
	}
	return 0, nil, nil
}

// list is a field for lists whose lengths are known.
func list(name string, t dtype.Type, lengths [2]int) loader.Field {
	switch {
	case lengths == [2]int{1, 1}:
		return loader.Field{Name: name, DType: t}
	case lengths[0] == lengths[1]:
		return loader.Field{Name: name, DType: t, Shape: []int{lengths[0]}}
	}
	return loader.Field{Name: name, DType: t, Shape: []int{room(lengths[1])}, Ragged: &loader.Ragged{}}
}
