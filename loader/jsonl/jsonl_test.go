package jsonl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/jsonl"
	"github.com/leat-go/leat/loader/source"
)

// in is a source of a text.
func in(text string) []source.Source {
	return []source.Source{source.FS(fstest.MapFS{"a.jsonl": {Data: []byte(text)}}, "a.jsonl")}
}

func ragged(name string, t dtype.Type, shape ...int) loader.Field {
	return loader.Field{Name: name, DType: t, Shape: shape, Ragged: &loader.Ragged{}}
}

var fields = []loader.Field{
	ragged("text", dtype.Uint8, 40),
	{Name: "label", DType: dtype.Int64},
	{Name: "box", DType: dtype.Float32, Shape: []int{2, 2}},
	{Name: "ok", DType: dtype.Bool},
}

// Files of Python's json module.
func TestWhatPythonWrites(t *testing.T) {
	for _, name := range []string{"ascii.jsonl", "utf8.jsonl", "dense.jsonl"} {
		files := []source.Source{source.Path(filepath.Join("testdata", name))}
		d, err := jsonl.Open(t.Context(), files, fields, jsonl.Options{InMemory: true})
		require.NoError(t, err)
		samples, err := drain.Samples(t.Context(), d)
		require.NoError(t, err)
		require.NoError(t, d.Close())
		var texts []string
		for _, s := range samples {
			texts = append(texts, string(s["text"]))
		}
		require.Equal(t, []string{"plain", "said \"so\"\n\\", "é 世 😀", ""}, texts)
		require.Equal(t, []int64{3, -9007199254740993, 0, 7}, drain.Field[int64](samples, "label"))
		require.Equal(t, []float32{0, 1.5, -2e-3, 4, 1, 2, 3, 4, 0, 0, 0, 0, 9, 9, 9, 9}, drain.Field[float32](samples, "box"))
		require.Equal(t, []bool{true, false, true, false}, drain.Field[bool](samples, "ok"))
	}
}

func TestValuesOfEveryType(t *testing.T) {
	for _, c := range []struct {
		field loader.Field
		value string
		want  any
	}{
		{loader.Field{DType: dtype.Uint8}, "255", []uint8{255}},
		{loader.Field{DType: dtype.Int8}, "-128", []int8{-128}},
		{loader.Field{DType: dtype.Uint16}, "65535", []uint16{65535}},
		{loader.Field{DType: dtype.Int16}, "-32768", []int16{-32768}},
		{loader.Field{DType: dtype.Uint32}, "4294967295", []uint32{4294967295}},
		{loader.Field{DType: dtype.Int32}, "-2147483648", []int32{-2147483648}},
		{loader.Field{DType: dtype.Uint64}, "18446744073709551615", []uint64{18446744073709551615}},
		{loader.Field{DType: dtype.Float64, Shape: []int{3}}, "[0.1, 1E2 ,-0]", []float64{0.1, 100, 0}},
		{loader.Field{DType: dtype.Float32, Shape: []int{2, 0}}, "[[],[ ]]", []float32(nil)},
		{ragged("", dtype.Int32, 5), "[1,2]", []int32{1, 2}},
		{ragged("", dtype.Int32, 5, 2), "[[1,2],[3,4],[5,6]]", []int32{1, 2, 3, 4, 5, 6}},
		{ragged("", dtype.Uint8, 5), "[1,2]", []uint8{1, 2}},
		{ragged("", dtype.Uint8, 5), "[]", []uint8(nil)},
		{ragged("", dtype.Uint8, 5), `"\u00e9\ud83d"`, []uint8("é\xef\xbf\xbd")},
		{ragged("", dtype.Uint8, 5), "\"a\xff\"", []uint8("a\xef\xbf\xbd")},
	} {
		c.field.Name = "x\""
		text := fmt.Sprintf(` { "y" : {"x": "]", "z":[{}]} , "\u0078\"" :%s , "z": null}`, c.value)
		d, err := jsonl.Open(t.Context(), in(text), []loader.Field{c.field}, jsonl.Options{})
		require.NoError(t, err)
		samples, err := drain.Samples(t.Context(), d)
		require.NoError(t, err, c.value)
		switch want := c.want.(type) {
		case []uint8:
			require.Equal(t, want, drain.Field[uint8](samples, c.field.Name))
		case []int8:
			require.Equal(t, want, drain.Field[int8](samples, c.field.Name))
		case []uint16:
			require.Equal(t, want, drain.Field[uint16](samples, c.field.Name))
		case []int16:
			require.Equal(t, want, drain.Field[int16](samples, c.field.Name))
		case []uint32:
			require.Equal(t, want, drain.Field[uint32](samples, c.field.Name))
		case []int32:
			require.Equal(t, want, drain.Field[int32](samples, c.field.Name))
		case []uint64:
			require.Equal(t, want, drain.Field[uint64](samples, c.field.Name))
		case []float32:
			require.Equal(t, want, drain.Field[float32](samples, c.field.Name))
		case []float64:
			require.Equal(t, want, drain.Field[float64](samples, c.field.Name))
		}
	}
}

func TestBrokenLinesSayWhere(t *testing.T) {
	const good = `{"text":"a","label":1,"box":[[1,2],[3,4]],"ok":true}` + "\n"
	for line, want := range map[string]string{
		`{"text":"a","label":1,"box":[[1,2],[3,4]]`: "want JSON, got unexpected end of JSON input",
		`{"text":"a"}{}`: "at byte 66: record 1: want JSON, got invalid character '{'",
		`[1]`:            "at byte 53: record 1: want an object, got \"[1]\"",
		`{"text":"a","label":1,"box":[[1,2],[3,4]]}`:                     "record 1: ok: want its key in the object, got none",
		`{"text":"a","label":1,"label":2,"box":[[1,2],[3,4]],"ok":true}`: "record 1: label: want each key once",
		`{"text":"a","label":1.0,"box":[[1,2],[3,4]],"ok":true}`:         `at byte 73: record 1: label: want an integer of -9223372036854775808 to 9223372036854775807, got "1.0"`,
		`{"text":"a","label":null,"box":[[1,2],[3,4]],"ok":true}`:        `label: want an integer of -9223372036854775808 to 9223372036854775807, got "null"`,
		`{"text":"a","label":"1","box":[[1,2],[3,4]],"ok":true}`:         `label: want a number, true or false, got "\"1\""`,
		`{"text":"a","label":1,"box":[[1,2],[3]],"ok":true}`:             `box: want an array of 2 elements, got "[3]"`,
		`{"text":"a","label":1,"box":[[1,2],[3,4],[]],"ok":true}`:        `box: want an array of 2 elements, got "[[1,2],[3,4],[]]"`,
		`{"text":"a","label":1,"box":7,"ok":true}`:                       `box: want an array of 2 elements, got "7"`,
		`{"text":"a","label":1,"box":[[1,2],[3,1e40]],"ok":true}`:        `box: want a number that float32 holds, got "1e40"`,
		`{"text":"a","label":1,"box":[[1,2],[3,4]],"ok":2}`:              `ok: want true or false, got "2"`,
		`{"text":"12345678901234567890123456789012345678901","label":1}`: `text: want a string of at most 40 bytes, got`,
		`{"text":[1,256],"label":1}`:                                     `text: want an integer of 0 to 255, got "256"`,
		`{"text":{"a":"b"},"label":1}`:                                   `text: want an array of at most 40 elements, got "{\"a\":\"b\"}"`,
	} {
		d, err := jsonl.Open(t.Context(), in(good+line+"\n"+good), fields, jsonl.Options{})
		require.NoError(t, err)
		samples, err := drain.Samples(t.Context(), d)
		var format *source.FormatError
		require.ErrorAs(t, err, &format, line)
		require.ErrorContains(t, err, want)
		require.Equal(t, int64(1), format.Record)
		require.Equal(t, "a.jsonl", format.File)
		require.Equal(t, "jsonl", format.Format)
		require.Len(t, samples, 1)
	}
	_, err := jsonl.Open(t.Context(), in("{}"), []loader.Field{{Name: "x", DType: dtype.BFloat16}}, jsonl.Options{})
	require.ErrorContains(t, err, "jsonl: fields[0] (x) is bfloat16")
	_, err = jsonl.OpenFunc[int](t.Context(), in("{}"), fields, nil, jsonl.Options{})
	require.ErrorContains(t, err, "jsonl: encode is nil")
}

// A string is for a field of text, and a ragged field is ragged in its first dimension.
func TestValuesOfOtherFields(t *testing.T) {
	for value, c := range map[string]struct {
		field loader.Field
		want  string
	}{
		`"ab"`:        {loader.Field{DType: dtype.Uint8, Shape: []int{2}}, "want an array of 2 elements"},
		`"abc"`:       {ragged("", dtype.Int8, 3), "want an array of at most 3 elements"},
		`"abcd"`:      {ragged("", dtype.Uint8, 3, 2), "want an array of at most 3 elements"},
		"[[1,2],[3]]": {ragged("", dtype.Int8, 3, 2), `want an array of 2 elements, got "[3]"`},
		"[1,2,3,4]":   {ragged("", dtype.Int8, 3), `want an array of at most 3 elements, got "[1,2,3,4]"`},
		`[{"a":1}]`:   {ragged("", dtype.Int8, 3), `want a number, true or false, got "{\"a\":1}"`},
		"[\t1\r,\v2]": {ragged("", dtype.Int8, 3), "want JSON"},
		"[[1]]":       {ragged("", dtype.Int8, 3), `want a number, true or false, got "[1]"`},
	} {
		c.field.Name = "x"
		d, err := jsonl.Open(t.Context(), in("\t{\t\"x\"\r:\t"+value+"\t}\t"), []loader.Field{c.field}, jsonl.Options{})
		require.NoError(t, err)
		_, err = drain.Samples(t.Context(), d)
		var format *source.FormatError
		require.ErrorAs(t, err, &format, value)
		require.ErrorContains(t, err, c.want)
	}
	d, err := jsonl.Open(t.Context(), in("\t{\t\"x\"\r:\t[\t1\t,\t2\r]\t}\t"), []loader.Field{ragged("x", dtype.Int8, 3)}, jsonl.Options{})
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []int8{1, 2}, drain.Field[int8](samples, "x"))
}

func TestOpenFunc(t *testing.T) {
	type question struct {
		Text   string `json:"text"`
		Points int16  `json:"points"`
	}
	field := []loader.Field{{Name: "points", DType: dtype.Int16}}
	encode := func(_ context.Context, q question, row *loader.Row) error {
		return loader.Write(row, "points", q.Points)
	}
	d, err := jsonl.OpenFunc(t.Context(), in("{\"points\":3}\n\n{\"text\":\"x\",\"points\":4}\n"), field, encode, jsonl.Options{})
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []int16{3, 4}, drain.Field[int16](samples, "points"))
	for line, want := range map[string]string{
		`{"points":"3"}`:   "at byte 16: record 1: points: want JSON that a jsonl_test.question holds, got a string",
		`{"points":3`:      "want JSON, got unexpected end of JSON input",
		`{"points":99999}`: "points: want JSON that a jsonl_test.question holds, got a number 99999",
	} {
		d, err := jsonl.OpenFunc(t.Context(), in("{}\n"+line), field, encode, jsonl.Options{})
		require.NoError(t, err)
		_, err = drain.Samples(t.Context(), d)
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.ErrorContains(t, err, want)
	}
}

// What encoding/json says of a line is what a sample has.
func FuzzOpen(f *testing.F) {
	f.Add(`{"text":"a\u00e9\"","label":1,"box":[[1,2],[3,4]],"ok":true,"x":[{"y":"]}"}]}`)
	f.Add(`{"label":-5 , "text":"", "box" : [ [ 1e5 , -2.5 ] , [ 0 , 4 ] ], "ok" : false }`)
	f.Add(`{"text":[1,2],"label":1,"box":[],"ok":null}`)
	f.Fuzz(func(t *testing.T, line string) {
		d, err := jsonl.Open(t.Context(), in(line), fields, jsonl.Options{})
		if err != nil || d.Len() != 1 {
			return // several lines, or a gzip file
		}
		samples, err := drain.Samples(t.Context(), d)
		if err != nil {
			var format *source.FormatError
			require.ErrorAs(t, err, &format)
			require.NotEmpty(t, format.Want)
			require.NotEmpty(t, format.Got)
			return
		}
		var value map[string]json.RawMessage
		var label int64
		var box [2][2]float32
		var ok bool
		text := []byte(line)
		for len(text) > 3 && string(text[:3]) == "\xef\xbb\xbf" {
			text = text[3:]
		}
		require.NoError(t, json.Unmarshal(text, &value))
		require.NoError(t, json.Unmarshal(value["label"], &label))
		require.NoError(t, json.Unmarshal(value["box"], &box))
		if json.Unmarshal(value["ok"], &ok) == nil { // 0 and 1 are taken too
			require.Equal(t, []bool{ok}, drain.Field[bool](samples, "ok"))
		}
		require.Equal(t, []int64{label}, drain.Field[int64](samples, "label"))
		require.Equal(t, []float32{box[0][0], box[0][1], box[1][0], box[1][1]}, drain.Field[float32](samples, "box"))
		var s string
		if json.Unmarshal(value["text"], &s) == nil {
			require.Equal(t, s, string(samples[0]["text"]))
		}
	})
}
