package found

import (
	"bufio"
	"bytes"
	"context"
	stdcsv "encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/csv"
	"github.com/leat-go/leat/loader/jsonl"
	"github.com/leat-go/leat/loader/source"
)

// probeBytes is how much of a file is looked at to know its columns.
const probeBytes = 4 << 20

// begin reads the beginning of the first file, up to the end of a line.
func (s *Set) begin(ctx context.Context) (text []byte, err error) {
	f, err := s.Files[0].Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text = make([]byte, min(probeBytes, f.Size()))
	if err := source.ReadFull(ctx, f, text, 0); err != nil {
		return nil, err
	}
	if end := bytes.LastIndexByte(text, '\n'); end >= 0 && int64(len(text)) < f.Size() {
		text = text[:end+1]
	}
	return text, nil
}

func openCSV(ctx context.Context, s *Set, o Options) error {
	text, err := s.begin(ctx)
	if err != nil {
		return err
	}
	t, err := readTable(text, o.Probe)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Files[0].Name(), err)
	}
	s.Names = map[string][]string{}
	var columns []csv.Column
	var literals strings.Builder
	for i, name := range t.names {
		c := t.column(i, name)
		columns = append(columns, c)
		if c.Categories != nil {
			s.Names[c.Name] = c.Categories
		}
		fmt.Fprintf(&literals, "\t{Field: loader.Field{%s}", fieldCode(c.Field))
		for _, part := range []struct {
			name string
			v    any
			has  bool
		}{{"From", c.From, c.From != ""}, {"Categories", c.Categories, c.Categories != nil}, {"Empty", c.Empty, c.Empty != ""}} {
			if part.has {
				fmt.Fprintf(&literals, ", %s: %#v", part.name, part.v)
			}
		}
		literals.WriteString("},\n")
	}
	options := csv.Options{Comma: t.comma, NoHeader: !t.header, InMemory: true} // who looks leaves nothing behind
	data, err := csv.Open(ctx, s.Files, columns, options)
	if err != nil {
		return err
	}
	s.note("the types of the columns are a guess by the first %d rows", len(t.rows))
	var stated []string
	if t.comma != ',' {
		stated = append(stated, fmt.Sprintf("Comma: %q", t.comma))
	}
	if !t.header {
		stated = append(stated, "NoHeader: true")
	}
	s.code = code{
		imports: []string{"dtype", "loader/source", "loader/csv"}, close: true,
		lines: s.files() + fmt.Sprintf("data, err := csv.Open(ctx, files, []csv.Column{\n%s}, csv.Options{%s})\ncheck", literals.String(), strings.Join(stated, ", ")),
	}
	return s.opened(data, data.Close)
}

// A table is the beginning of a CSV file.
type table struct {
	comma  byte
	header bool
	names  []string
	rows   [][]string
}

// readTable splits text. What stands between cells is what the first line has most of.
func readTable(text []byte, most int) (t table, err error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	first, _, _ := bytes.Cut(text, []byte("\n"))
	t.comma = ','
	for _, c := range []byte{'\t', ';'} {
		if bytes.Count(first, []byte{c}) > bytes.Count(first, []byte{t.comma}) {
			t.comma = c
		}
	}
	r := stdcsv.NewReader(bytes.NewReader(text))
	r.Comma = rune(t.comma)
	r.ReuseRecord = false
	for len(t.rows) <= most {
		row, err := r.Read()
		if err == io.EOF || len(t.rows) > 0 && err != nil { // the package that reads rows says where
			break
		}
		if err != nil {
			return t, err
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) == 0 {
		return t, errors.New("there are no rows")
	}
	t.header = slices.ContainsFunc(t.rows[0], func(cell string) bool { return !isNumber(cell) && cell != "" })
	t.names = t.rows[0]
	if t.header {
		t.rows = t.rows[1:]
		return t, nil
	}
	t.names = make([]string, len(t.rows[0]))
	for i := range t.names {
		t.names[i] = strconv.Itoa(i)
	}
	return t, nil
}

func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return err == nil
}

// isInteger is false for those with zeros in front, which are names.
func isInteger(cell string) bool {
	cell = strings.TrimSpace(cell)
	n, err := strconv.ParseInt(cell, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == cell
}

// mostCategories is how many texts a column may have that is one of classes.
const mostCategories = 64

// column guesses what column i is.
func (t table) column(i int, name string) csv.Column {
	integers, numbers, empty, longest := true, true, false, 0
	texts := map[string]bool{}
	for _, row := range t.rows {
		cell := row[i]
		longest = max(longest, len(cell))
		texts[cell] = true
		if cell == "" {
			empty = true
			continue
		}
		integers = integers && isInteger(cell)
		numbers = numbers && isNumber(cell) && (isInteger(cell) || strings.ContainsAny(cell, ".eEnNiI"))
	}
	c := csv.Column{Field: loader.Field{Name: name}}
	if name == "" {
		c.Name = fmt.Sprintf("column%d", i)
		c.From = name
	}
	switch {
	case len(t.rows) > 0 && integers && !empty:
		c.DType = dtype.Int64
	case len(t.rows) > 0 && numbers && len(texts) > 1:
		c.DType = dtype.Float32
		if empty {
			c.Empty = "NaN"
		}
	case len(texts) <= mostCategories && 4*len(texts) <= len(t.rows):
		c.DType = dtype.Int64
		for text := range texts {
			c.Categories = append(c.Categories, text)
		}
		slices.Sort(c.Categories)
	default:
		c.Field = text(c.Name, longest)
	}
	return c
}

func openJSONL(ctx context.Context, s *Set, o Options) error {
	begin, err := s.begin(ctx)
	if err != nil {
		return err
	}
	fields := s.keys(begin, o.Probe)
	if len(fields) == 0 {
		return &UnknownError{Path: s.Files[0].Name(), Why: "no key that all objects have was found in the first lines"}
	}
	data, err := jsonl.Open(ctx, s.Files, fields, jsonl.Options{InMemory: true})
	if err != nil {
		return err
	}
	s.code = code{
		imports: []string{"dtype", "loader/source", "loader/jsonl"}, close: true,
		lines: s.files() + fieldsCode(fields) + "data, err := jsonl.Open(ctx, files, fields, jsonl.Options{})\ncheck",
	}
	return s.opened(data, data.Close)
}

// keys guesses the fields by the first lines.
func (s *Set) keys(begin []byte, most int) (fields []loader.Field) {
	var order []string
	seen := map[string]*jsonKey{}
	n := 0
	lines := bufio.NewScanner(bytes.NewReader(begin))
	lines.Buffer(nil, probeBytes+1)
	for n < most && lines.Scan() {
		var value map[string]any
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if d.Decode(&value) != nil {
			continue // it is a problem of that line, found when it is read
		}
		n++
		for name, v := range value {
			k := seen[name]
			if k == nil {
				k = &jsonKey{integers: true}
				seen[name] = k
				order = append(order, name)
			}
			k.look(v)
		}
	}
	slices.Sort(order)
	for _, name := range order {
		k := seen[name]
		f, why := k.field(name)
		if k.seen < n {
			why = fmt.Sprintf("%d of the first %d lines have it", k.seen, n)
		}
		if why != "" {
			s.note("%s is left out: %s", name, why)
			continue
		}
		fields = append(fields, f)
	}
	s.note("the types of the keys are a guess by the first %d lines", n)
	return fields
}

// A jsonKey is what the values of a key were.
type jsonKey struct {
	seen     int
	kind     string // of the values: string, bool, number, array or what else
	integers bool
	longest  int
	shape    []int // of arrays, the first dimension the longest
	shortest int
}

func (k *jsonKey) look(v any) {
	k.seen++
	kind := "object"
	switch v := v.(type) {
	case nil:
		kind = "null"
	case string:
		kind, k.longest = "string", max(k.longest, len(v))
	case bool:
		kind = "bool"
	case json.Number:
		kind = "number"
		k.integers = k.integers && isInteger(v.String())
	case []any:
		kind = "array"
		shape, ok := k.dimensions(v)
		if len(v) == 0 && len(k.shape) > 0 {
			shape = append([]int{0}, k.shape[1:]...)
		}
		if k.shape == nil {
			k.shape, k.shortest = shape, len(v)
		}
		if !ok || len(shape) != len(k.shape) || !slices.Equal(shape[1:], k.shape[1:]) {
			kind = "array without a shape"
		} else {
			k.shape[0], k.shortest = max(k.shape[0], len(v)), min(k.shortest, len(v))
		}
	}
	if k.kind == "" || k.kind == kind {
		k.kind = kind
	} else {
		k.kind = "mixed"
	}
}

// dimensions is the shape of an array of numbers.
func (k *jsonKey) dimensions(v []any) (shape []int, ok bool) {
	shape = []int{len(v)}
	for i, e := range v {
		switch e := e.(type) {
		case json.Number:
			k.integers = k.integers && isInteger(e.String())
			if len(shape) > 1 {
				return shape, false
			}
		case []any:
			inner, ok := k.dimensions(e)
			if i == 0 {
				shape = append(shape, inner...)
			}
			if !ok || !slices.Equal(shape[1:], inner) {
				return shape, false
			}
		default:
			return shape, false
		}
	}
	return shape, true
}

// field is the field for the values, or why there is none.
func (k *jsonKey) field(name string) (f loader.Field, why string) {
	t := dtype.Float64
	if k.integers {
		t = dtype.Int64
	}
	switch k.kind {
	case "string":
		return text(name, k.longest), ""
	case "bool":
		return loader.Field{Name: name, DType: dtype.Bool}, ""
	case "number":
		return loader.Field{Name: name, DType: t}, ""
	case "array":
		f := loader.Field{Name: name, DType: t, Shape: k.shape}
		if k.shortest < k.shape[0] {
			f.Shape[0], f.Ragged = room(k.shape[0]), &loader.Ragged{}
		}
		return f, ""
	}
	return f, "its values are of kind " + k.kind
}
