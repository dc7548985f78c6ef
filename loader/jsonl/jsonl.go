package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/parse"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open and OpenFunc. The zero value is ready to use.
type Options = lines.Options

// Dataset is the values of some files.
type Dataset = lines.Dataset

// Open opens files of which each line that is not empty is an object. A sample has the values
// of the keys that are called as the fields are, which must be there, once; other keys are
// passed over. A value is
//
//	a number, true or false    for a field without dimensions
//	an array                   for a field with dimensions, nested as deep; of a ragged one
//	                           any number of elements up to the maximum
//	a string                   for a ragged field of uint8 and one dimension: its bytes in UTF-8
//
// A number must be one that the field's type holds: 1.5, 1e3 and 300 are no uint8. null is an
// error. Fields of float16 and bfloat16 are refused, since nobody writes them as text.
//
// The error is that of lines.Open. A line that is no such object is the failure of its sample,
// a *source.FormatError.
func Open(ctx context.Context, files []source.Source, fields []loader.Field, o Options) (*Dataset, error) {
	reader := &objects{fields: fields}
	var wrong []error
	for i, f := range fields {
		if !parse.Readable(f.DType) {
			wrong = append(wrong, &loader.OptionError{Package: "jsonl", Option: fmt.Sprintf("fields[%d] (%s)", i, f.Name), Value: f.DType, Want: "a type that is written as text"})
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return lines.Open(ctx, files, fields, reader.encode, o)
}

// OpenFunc opens files of which each line that is not empty is a value that encoding/json can
// read into a T. encode writes it to a row, under the rules of loader.Dataset.Read. The error is
// that of lines.Open. A line that is no T is the failure of its sample, a *source.FormatError.
func OpenFunc[T any](ctx context.Context, files []source.Source, fields []loader.Field,
	encode func(ctx context.Context, value T, row *loader.Row) error, o Options) (*Dataset, error) {
	if encode == nil {
		return nil, &loader.OptionError{Package: "jsonl", Option: "encode", Value: "nil", Want: "a function"}
	}
	return lines.Open(ctx, files, fields, func(ctx context.Context, text []byte, row *loader.Row) error {
		var value T
		if err := json.Unmarshal(text, &value); err != nil {
			return unreadable(text, err, fmt.Sprintf("JSON that a %T holds", value))
		}
		return encode(ctx, value, row)
	}, o)
}

// unreadable is the error for a line that encoding/json can't read.
func unreadable(text []byte, err error, want string) error {
	e := &source.FormatError{Format: "jsonl", Offset: -1, Want: want, Got: parse.Shown(text), Err: err}
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		e.Offset, e.Want, e.Got = min(syntax.Offset, int64(len(text))), "JSON", err.Error()
	case errors.As(err, &mistyped):
		e.Offset, e.Field, e.Got = min(mistyped.Offset, int64(len(text))), mistyped.Field, "a "+mistyped.Value
	}
	return e
}

// objects reads lines that are objects.
type objects struct {
	fields  []loader.Field
	scratch loader.Local[[]bool]
}

// encode writes the values of an object's keys. The text is known to be JSON from the first
// line on, so what follows has to understand nothing but that.
func (o *objects) encode(_ context.Context, text []byte, row *loader.Row) error {
	if !json.Valid(text) {
		var none json.RawMessage
		return unreadable(text, json.Unmarshal(text, &none), "JSON")
	}
	seen := o.scratch.Of(row)
	if *seen == nil {
		*seen = make([]bool, len(o.fields))
	}
	clear(*seen)
	v := &values{text: text}
	if v.space(); v.text[v.at] != '{' {
		return v.wrong("", "an object")
	}
	for v.at++; v.more('}'); {
		key, at := v.string(), v.at
		v.space()
		v.at++ // the colon
		v.space()
		field := o.find(key)
		if field < 0 {
			v.skip()
			continue
		}
		if (*seen)[field] {
			v.at = at
			return v.wrong(o.fields[field].Name, "each key once")
		}
		(*seen)[field] = true
		if err := v.write(&o.fields[field], row); err != nil {
			return err
		}
	}
	for i, f := range o.fields {
		if !(*seen)[i] {
			return &source.FormatError{Format: "jsonl", Offset: -1, Field: f.Name, Want: "its key in the object", Got: "none"}
		}
	}
	return nil
}

// find is the field that is called as a key, or -1.
func (o *objects) find(key []byte) int {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = unescaped(key)
	}
	for i := range o.fields {
		if string(key) == o.fields[i].Name {
			return i
		}
	}
	return -1
}

// unescaped is what stands between the quotes of a string that has escapes.
func unescaped(text []byte) []byte {
	var s string
	quoted := append(append([]byte{'"'}, text...), '"')
	_ = json.Unmarshal(quoted, &s) // it is valid
	return []byte(s)
}

// textual reports whether a field takes a string.
func textual(f *loader.Field) bool {
	return f.DType == dtype.Uint8 && f.Ragged != nil && len(f.Shape) == 1
}
