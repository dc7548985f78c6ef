package lines_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

func zipped(t testing.TB, parts ...string) (all []byte) {
	for _, part := range parts {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		all = append(all, b.Bytes()...)
	}
	return all
}

func squeezed(t testing.TB, text string) []byte {
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll([]byte(text), nil)
}

// streamed is what a shard of some files gives from a mark on: its lines, the failures between
// them, the mark behind each, and the error at the end.
func streamed(t testing.TB, files []source.Source, o lines.StreamOptions, mark []byte) (got, marks []string, end error) {
	s := lines.NewStream(files, o)
	require.NoError(t, s.Err())
	r, err := s.Open(t.Context(), loader.Pass{}, 0, mark)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for last := error(nil); ; {
		var item stream.Item[[]byte]
		ok, err := r.Next(t.Context(), &item)
		if err == nil && !ok || err != nil && last != nil && err.Error() == last.Error() {
			return got, marks, err
		}
		if last = err; err != nil {
			got = append(got, err.Error())
		} else {
			got = append(got, fmt.Sprintf("%s@%d#%d", item.Value, item.Origin.Offset, item.Origin.Record))
		}
		mark, err := r.AppendMark(nil)
		require.NoError(t, err)
		marks = append(marks, string(mark))
	}
}

func in(contents ...[]byte) (files []source.Source) {
	all := fstest.MapFS{}
	for i, b := range contents {
		name := string(rune('a' + i))
		all[name] = &fstest.MapFile{Data: b}
		files = append(files, source.FS(all, name))
	}
	return files
}

// The lines are the same however their files are compressed, and from each mark on.
func TestAStreamOfCompressedLines(t *testing.T) {
	const text = "\xef\xbb\xbfone\r\n\n22\n333"
	want := []string{"one@3#0", "22@9#1", "333@12#2"}
	for name, b := range map[string][]byte{
		"plain":       []byte(text),
		"gzip":        zipped(t, text),
		"gzip parts":  zipped(t, text[:1], text[1:10], "", text[10:]),
		"gzip padded": append(zipped(t, text[:10], text[10:]), make([]byte, 512)...),
		"zstd":        squeezed(t, text),
	} {
		got, marks, err := streamed(t, in(b), lines.StreamOptions{}, nil)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
		for i, mark := range marks {
			rest, _, err := streamed(t, in(b), lines.StreamOptions{}, []byte(mark))
			require.NoError(t, err)
			require.Equal(t, want[i+1:], append([]string{}, rest...), name)
		}
	}
	got, _, err := streamed(t, in(zipped(t, "1\n"), nil, []byte("2"), squeezed(t, "3")), lines.StreamOptions{Shards: 1}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"1@0#0", "2@0#0", "3@0#0"}, got)
}

func TestLinesThatAreTooLong(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	for _, b := range [][]byte{zipped(t, "1\n"+long+"\n22\n4444\r\n"+long), squeezed(t, "1\n"+long+"\n22\n4444\r\n"+long)} {
		got, marks, err := streamed(t, in(b), lines.StreamOptions{MaxLine: 4}, nil)
		require.NoError(t, err)
		want := []string{"1@0#0", "lines: a: at byte 2: record 1: want a line of at most the 4 bytes of MaxLine, got more",
			"22@300003#2", "4444@300006#3", "lines: a: at byte 300012: record 4: want a line of at most the 4 bytes of MaxLine, got more"}
		require.Equal(t, want, got)
		for i, mark := range marks {
			rest, _, err := streamed(t, in(b), lines.StreamOptions{MaxLine: 4}, []byte(mark))
			require.NoError(t, err)
			require.Equal(t, want[i+1:], append([]string{}, rest...))
		}
	}
}

// What can't be decompressed is an error behind the lines before it, and never the end.
func TestBrokenCompression(t *testing.T) {
	whole := zipped(t, strings.Repeat("0123456789\n", 20_000))
	for name, b := range map[string][]byte{
		"cut off": whole[:len(whole)-9], "garbage": append(zipped(t, "1\n"), "garbage"...), "no end": zipped(t, "1\n")[:20],
	} {
		got, _, err := streamed(t, in(b), lines.StreamOptions{}, nil)
		var format *source.FormatError
		require.ErrorAs(t, err, &format, name)
		require.Equal(t, "lines", format.Format)
		for _, line := range got[:len(got)-1] {
			require.NotContains(t, line, "lines:")
		}
	}
	require.Error(t, lines.NewStream(nil, lines.StreamOptions{}).Err())
	require.ErrorContains(t, lines.NewStream(in(nil), lines.StreamOptions{MaxLine: -1}).Err(), "lines: MaxLine is -1")
	r, err := lines.NewStream(in([]byte("1\n")), lines.StreamOptions{}).Open(t.Context(), loader.Pass{}, 0, []byte(`{"file":0,"offset":3,"record":1}`))
	require.NoError(t, err)
	var item stream.Item[[]byte]
	_, err = r.Next(t.Context(), &item)
	require.ErrorContains(t, err, "a: at byte 3: record 1: want a line at the place that was marked")
	require.NoError(t, r.Close())
}
