package csv_test

import (
	stdcsv "encoding/csv"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/csv"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/source"
)

// in are sources of texts.
func in(texts ...string) (all []source.Source) {
	files := fstest.MapFS{}
	for i, text := range texts {
		name := string(rune('a'+i)) + ".csv"
		files[name] = &fstest.MapFile{Data: []byte(text)}
		all = append(all, source.FS(files, name))
	}
	return all
}

func number(name string, t dtype.Type, shape ...int) csv.Column {
	return csv.Column{Field: loader.Field{Name: name, DType: t, Shape: shape}}
}

func text(name string, most int) csv.Column {
	return csv.Column{Field: loader.Field{Name: name, DType: dtype.Uint8, Shape: []int{most}, Ragged: &loader.Ragged{}}}
}

var columns = []csv.Column{
	{Field: loader.Field{Name: "size", DType: dtype.Float32, Shape: []int{2}}, From: "sepal length"},
	{Field: loader.Field{Name: "species", DType: dtype.Int64}, Categories: []string{"setosa", "versicolor", "virginica"}},
	text("note", 40),
}

func texts(samples []drain.Sample, field string) (all []string) {
	for _, s := range samples {
		all = append(all, string(s[field]))
	}
	return all
}

// Files of Python's csv module, in its dialects.
func TestWhatPythonWrites(t *testing.T) {
	for name, comma := range map[string]byte{"excel.csv": 0, "unix.csv": ',', "semicolon.csv": ';', "tab.csv": '\t'} {
		for _, mapped := range []bool{false, true} {
			files := []source.Source{source.Path(filepath.Join("testdata", name))}
			d, err := csv.Open(t.Context(), files, columns, csv.Options{Comma: comma, InMemory: true, Mapped: mapped})
			require.NoError(t, err)
			samples, err := drain.Samples(t.Context(), d)
			require.NoError(t, err, name)
			require.NoError(t, d.Close())
			require.Equal(t, []float32{5.1, 3.5, 7, 3.2, 6.3, 3.3, 4.9, 3, 1e-3, -2.5}, drain.Field[float32](samples, "size"))
			require.Equal(t, []int64{0, 1, 2, 0, 2}, drain.Field[int64](samples, "species"))
			require.Equal(t, []string{"plain", `said "so", twice`, "two\nlines, and a comma", "", "é, 世"}, texts(samples, "note"))
		}
	}
}

func TestHeader(t *testing.T) {
	file := in("\xef\xbb\xbfa;\"b;c\"\n1;2\n")[0]
	names, err := csv.Header(t.Context(), file, csv.Options{Comma: ';'})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b;c"}, names)
	names, err = csv.Header(t.Context(), file, csv.Options{Comma: ';', NoHeader: true})
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1"}, names)
	_, err = csv.Header(t.Context(), file, csv.Options{Comma: '\n'})
	require.ErrorContains(t, err, "csv: Comma is")
}

func TestCells(t *testing.T) {
	files := in("a,b,a b,code\r\n1, 2 ,\"3\",007\r\n\r\n\"\",,\"\"\"x\"\"\",\"\"\r\n", "a,b,a b,code\n4,5,,1")
	empty := number("b", dtype.Float64)
	empty.Empty = "NaN"
	none := number("a", dtype.Int16)
	none.Empty = "-1"
	d, err := csv.Open(t.Context(), files, []csv.Column{none, empty, text("code", 3), text("a b", 5), number("nothing", dtype.Int8, 0)}, csv.Options{})
	require.ErrorContains(t, err, `want a column "nothing", got ["a" "b" "a b" "code"]`)
	require.Nil(t, d)
	nothing := number("nothing", dtype.Int8, 0)
	nothing.From = "a"
	d, err = csv.Open(t.Context(), files, []csv.Column{none, empty, text("code", 3), text("a b", 5), nothing}, csv.Options{})
	require.NoError(t, err)
	require.Equal(t, loader.Origin{File: "b.csv", Offset: 13}, d.Origin(2))
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []int16{1, -1, 4}, drain.Field[int16](samples, "a"))
	b := drain.Field[float64](samples, "b")
	require.True(t, b[0] == 2 && math.IsNaN(b[1]) && b[2] == 5)
	require.Equal(t, []string{"007", "", "1"}, texts(samples, "code"))
	require.Equal(t, []string{"3", `"x"`, ""}, texts(samples, "a b"))

	d, err = csv.Open(t.Context(), in("1;true\n0;FALSE\n"), []csv.Column{number("0", dtype.Bool), {Field: loader.Field{Name: "ok", DType: dtype.Bool}, From: "1"}},
		csv.Options{Comma: ';', NoHeader: true})
	require.NoError(t, err)
	samples, err = drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, drain.Field[bool](samples, "0"))
	require.Equal(t, []bool{true, false}, drain.Field[bool](samples, "ok"))
}

func TestBrokenRowsSayWhere(t *testing.T) {
	column := []csv.Column{number("a", dtype.Uint8), number("b", dtype.Float32)}
	for rows, want := range map[string]string{
		"1,2\n256,1\n": `a.csv: at byte 8: record 1: a: want an integer of 0 to 255, got "256"`,
		"1,2\n1,x\n":   `record 1: b: want a number that float32 holds, got "x"`,
		"1,2\n1,\n":    `record 1: b: want a number that float32 holds, got ""`,
		"1,2\n1\n":     "record 1: want 2 cells, as in the first row, got 1",
		"1,2\n1,2,3\n": "record 1: want 2 cells, as in the first row, got 3",
	} {
		d, err := csv.Open(t.Context(), in("a,b\n"+rows), column, csv.Options{})
		require.NoError(t, err)
		samples, err := drain.Samples(t.Context(), d)
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.ErrorContains(t, err, want)
		require.Len(t, samples, 1)
	}
	for rows, want := range map[string]string{
		"1,2\n1,\"2\"x\n": `a.csv: at byte 13: record 1: want quotes around a whole cell, and doubled in it, got "x"`,
		"1,2\n1,2\"\n":    `record 1: want quotes`,
		"1,2\n\"1,2\n":    `at byte 8: record 1: want a row whose quotes are closed, got the end of the file`,
		"1,2\n\"1\n\"2\n": `record 1: want quotes`,
	} {
		_, err := csv.Open(t.Context(), in("a,b\n"+rows), column, csv.Options{})
		var format *source.FormatError
		require.ErrorAs(t, err, &format, rows)
		require.ErrorContains(t, err, want)
	}
	for texts, want := range map[string][]string{
		"want text, got a gzip file":                           {"\x1f\x8b\x08"},
		"want a row, got an empty file":                        {""},
		`b.csv: at byte 0: header: want the columns ["a" "b"]`: {"a,b\n1,2\n", "b,a\n1,2\n"},
		`want a column "b"`:                                    {"a\n1\n"},
		`want one column "a", got several`:                     {"a,b,a\n1,2,3\n"},
	} {
		_, err := csv.Open(t.Context(), in(want...), column, csv.Options{})
		require.ErrorContains(t, err, texts)
	}
	_, err := csv.Open(t.Context(), in("a,b\n1,2\n"), []csv.Column{number("b", dtype.Int8, 2)}, csv.Options{})
	require.ErrorContains(t, err, `want 2 columns from "b" on, got 1`)
	_, err = csv.Open(t.Context(), nil, []csv.Column{number("x", dtype.Float16), {Field: loader.Field{Name: "y", DType: dtype.Int8, Shape: []int{1}, Ragged: &loader.Ragged{}}},
		{Field: loader.Field{Name: "z", DType: dtype.Float32}, Categories: []string{"a"}}, {Field: loader.Field{Name: "u", DType: dtype.Bool}, Categories: []string{"a"}},
		{Field: loader.Field{Name: "v", DType: dtype.Uint8, Shape: []int{2, 2}, Ragged: &loader.Ragged{}}}}, csv.Options{Comma: '"', MaxLine: -1})
	for _, want := range []string{"files is empty", "Comma is", "MaxLine is -1", "columns[0] (x)", "columns[1] (y)", "columns[2] (z)", "columns[3] (u)", "columns[4] (v)"} {
		require.ErrorContains(t, err, "csv: "+want)
	}
	_, err = csv.Open(t.Context(), []source.Source{source.Path("missing")}, column, csv.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	category := []csv.Column{{Field: loader.Field{Name: "a", DType: dtype.Uint8}, Categories: []string{"x"}, Empty: "y"}}
	for cell, want := range map[string]string{"z": `a: want one of the 1 categories, got "z"`, `""`: `got "y"`} {
		d, err := csv.Open(t.Context(), in("a\n"+cell+"\n"), category, csv.Options{})
		require.NoError(t, err)
		_, err = drain.Samples(t.Context(), d)
		require.ErrorContains(t, err, want)
	}
}

func TestRowsThatAreTooLong(t *testing.T) {
	column := []csv.Column{number("a", dtype.Uint8)}
	for rows, want := range map[string]string{
		"1,2345\n":             "",
		"1,23456\n":            "at byte 8: record 1: want a row of at most the 6 bytes of MaxLine, got more",
		"1,\"\n5\"\n":          "",
		"1,\"\n56\"\n":         "at byte 8: record 1: want a row of at most the 6 bytes of MaxLine, whose quotes are closed, got more",
		"1,\"\n3\n4\n5\n6\"\n": "at byte 8: record 1: want a row of at most the 6 bytes of MaxLine, whose quotes are closed, got more",
		"1,\"\n234567\"\n":     "at byte 8: record 1: want a row of at most the 6 bytes of MaxLine, whose quotes are closed, got more",
	} {
		d, err := csv.Open(t.Context(), in("a,b\n1,2\n"+rows), column, csv.Options{MaxLine: 6})
		if want == "" {
			require.NoError(t, err, rows)
			require.Equal(t, 2, d.Len())
			continue
		}
		var format *source.FormatError
		require.ErrorAs(t, err, &format, rows)
		require.ErrorContains(t, err, want)
	}
	d, err := csv.Open(t.Context(), in("a,b\n1,xy\n"), []csv.Column{text("b", 1)}, csv.Options{})
	require.NoError(t, err)
	_, err = drain.Samples(t.Context(), d)
	require.ErrorContains(t, err, `a.csv: at byte 4: record 0: b: want a text of at most 1 bytes, got "xy"`)
	many := make([]string, 257)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	d, err = csv.Open(t.Context(), in("a\n255\n256\n"), []csv.Column{{Field: loader.Field{Name: "a", DType: dtype.Uint8}, Categories: many}}, csv.Options{})
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.Len(t, samples, 1)
	require.ErrorContains(t, err, "a: want an integer of 0 to 255 for the number of a category")
}

// Rows within cells, one longer and one shorter than that before.
func TestRowsOfSeveralLines(t *testing.T) {
	d, err := csv.Open(t.Context(), in("a,b\n\"1\n\r\n2\",3\n\"\n\",4\n5,\"6\"\n"), []csv.Column{text("a", 9), text("b", 9)}, csv.Options{})
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []string{"1\n\r\n2", "\n", "5"}, texts(samples, "a"))
	require.Equal(t, []string{"3", "4", "6"}, texts(samples, "b"))
}

// A quote that is not closed is found where it is, in little memory, and not at the file's end.
func TestAQuoteThatIsNotClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	var b strings.Builder
	b.WriteString("text,number\n")
	for i := range 100_000 {
		if i == 3 {
			b.WriteString("\"abc,7\n")
			continue
		}
		b.WriteString("abc,7\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	require.NoError(t, os.Truncate(path, 256<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := csv.Open(t.Context(), []source.Source{source.Path(path)}, []csv.Column{number("number", dtype.Int8)}, csv.Options{MaxLine: 1 << 20})
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
	var format *source.FormatError
	require.ErrorAs(t, err, &format)
	require.Equal(t, int64(3), format.Record)
	require.Equal(t, int64(12+3*6), format.Offset)
	require.ErrorContains(t, err, "want a row of at most the 1048576 bytes of MaxLine, whose quotes are closed")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestEveryFailureOfARead(t *testing.T) {
	drain.EveryFailure(t, in("a,b\n1,\"\n2\"\n3,4\n", "a,b\n5,6"), func(files []source.Source) (io.Closer, error) {
		return csv.Open(t.Context(), files, []csv.Column{number("a", dtype.Int8)}, csv.Options{})
	})
}

// What encoding/csv reads as a column of text is what samples have.
func FuzzOpen(f *testing.F) {
	f.Add("a,b\n1,\"2\"\n")
	f.Add("\xef\xbb\xbfa,b\r\n\"x\"\"y\",\"\r\n\"\r\n\r\n,\n")
	f.Add("a,b\n\"1,2\n")
	f.Add("a,b\n1\"2,3\n")
	f.Fuzz(func(t *testing.T, file string) {
		file = strings.TrimPrefix(file, "\xef\xbb\xbf")
		if strings.Contains(file, "\r") {
			return // package csv changes line ends within cells
		}
		r := stdcsv.NewReader(strings.NewReader(file))
		r.FieldsPerRecord = -1
		var want []string
		var wrong error
		width := 0
		for {
			row, err := r.Read()
			if err == io.EOF {
				break
			}
			if err != nil {
				wrong = err
				break
			}
			if width == 0 {
				width = len(row)
			}
			if len(row) != width {
				wrong = stdcsv.ErrFieldCount
			}
			want = append(want, row[0])
		}
		column := text("x", 1000)
		column.From = "0"
		d, err := csv.Open(t.Context(), in(file), []csv.Column{column}, csv.Options{NoHeader: true})
		var samples []drain.Sample
		if err == nil {
			samples, err = drain.Samples(t.Context(), d)
		}
		if err != nil {
			var format *source.FormatError
			require.ErrorAs(t, err, &format)
			compressed := strings.Contains(format.Got, "decompress it") // by its first bytes, whatever follows
			if !compressed && !strings.Contains(format.Want, "at most 1000 bytes") && width > 0 {
				require.Error(t, wrong, "%v", err)
			}
			return
		}
		require.NoError(t, wrong)
		require.Equal(t, want, texts(samples, "x"))
	})
}
