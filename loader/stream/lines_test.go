package stream_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// files are sources of these contents, named a, b, c and so on.
func files(contents ...string) (files []source.Source) {
	fsys := fstest.MapFS{}
	for i, c := range contents {
		name := string(rune('a' + i))
		fsys[name] = &fstest.MapFile{Data: []byte(c)}
		files = append(files, source.FS(fsys, name))
	}
	return files
}

func lineTexts(events []event[[]byte]) (all []string) {
	for _, i := range items(events) {
		all = append(all, string(i.Value))
	}
	return all
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"\n", []string{""}},
		{"one", []string{"one"}},
		{"one\n", []string{"one"}},
		{"one\r\ntwo\r\n", []string{"one", "two"}},
		{"one\n\nthree", []string{"one", "", "three"}},
		{"a\rb\n", []string{"a\rb"}},
	} {
		s := stream.Lines(files(c.text), stream.LinesOptions{})
		require.Equal(t, c.want, lineTexts(read(t, s, pass, 0)), "%q", c.text)
		requireMarks(t, s, pass)
	}
}

// However files are cut and dealt out, each line comes once, from each place on.
func TestLinesOfParts(t *testing.T) {
	var contents []string
	var want []string
	for f := range 3 {
		var b strings.Builder
		for i := range 11 * f {
			line := fmt.Sprint(f, "/", i, strings.Repeat("x", i*i%17))
			want = append(want, line)
			b.WriteString(line + "\r\n"[i%2:])
		}
		contents = append(contents, b.String())
	}
	for _, o := range []stream.LinesOptions{
		{}, {Shards: 1}, {Shards: 2}, {Parts: 2}, {Parts: 5, Shards: 4}, {Parts: 400}, {Parts: 3, Shards: 2, Shuffle: true},
	} {
		s := stream.Lines(files(contents...), o)
		var got []string
		for shard := range s.Shards() {
			for _, item := range items(read(t, s, pass, shard)) {
				got = append(got, string(item.Value))
				f := item.Origin.File[0] - 'a'
				require.True(t, strings.HasPrefix(contents[f][item.Origin.Offset:], string(item.Value)))
				if item.Origin.Record >= 0 {
					require.Contains(t, string(item.Value), fmt.Sprint(f, "/", item.Origin.Record))
				}
			}
		}
		require.ElementsMatch(t, want, got, "%+v", o)
		requireMarks(t, s, pass)
		if o.Shuffle {
			require.NotEqual(t, lineTexts(read(t, s, pass, 0)), lineTexts(read(t, s, loader.Pass{Epoch: 2}, 0)))
		}
	}
}

// A line that is too long costs that record only, and is named.
func TestLinesTooLong(t *testing.T) {
	s := stream.Lines(files("short\n"+strings.Repeat("long", 100_000)+"\nlast"), stream.LinesOptions{Read: source.Options{MaxLine: 10, ReadBytes: 16}})
	events := read(t, s, pass, 0)
	require.Equal(t, []string{"short", "last"}, lineTexts(events))
	var long *source.LineError
	require.ErrorAs(t, events[1].err, &long)
	var located loader.Located
	require.ErrorAs(t, events[1].err, &located)
	require.Equal(t, loader.Origin{File: "a", Offset: 6, Record: 1, Line: 2}, located.Origin())
	require.Equal(t, int64(2), events[2].item.Origin.Record)
	requireMarks(t, s, pass)
}

func TestLinesOfFilesThatFail(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	s := stream.Lines([]source.Source{source.Path(path)}, stream.LinesOptions{Read: source.Options{ReadBytes: 4}})
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	for range 2 {
		_, _, err = next(ctx, r)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	require.NoError(t, r.Close())

	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600))
	r, err = s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	_, ok, err := next(ctx, r)
	require.True(t, ok && err == nil)
	mark := markOf(t, r)
	require.NoError(t, os.Truncate(path, 5))
	for range 2 {
		_, ok, err = next(ctx, r)
		require.False(t, ok)
		require.ErrorIs(t, err, source.ErrChanged)
		require.JSONEq(t, string(mark), string(markOf(t, r)), "no line was lost")
	}
	require.NoError(t, r.Close())
}

// A call that is cancelled loses nothing.
func TestLinesCancelled(t *testing.T) {
	s := stream.Lines(files("one\ntwo\n"), stream.LinesOptions{Parts: 2})
	gone, cancel := context.WithCancel(ctx)
	cancel()
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	_, _, err = next(gone, r)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"one"}, lineTexts(drain(t, r, nil)))
	require.NoError(t, r.Close())
}

func TestLinesRefuseMarks(t *testing.T) {
	s := stream.Lines(files("one\ntwo\n", "three\n"), stream.LinesOptions{Shards: 1})
	for _, mark := range []string{
		"{", `{"part":-1}`, `{"part":3}`, `{"part":9223372036854775807,"offset":0}`, `{"part":0,"offset":-1}`,
		`{"part":0,"offset":3}`, `{"part":0,"offset":9}`, `{"part":0,"offset":9223372036854775807}`, `{"part":0,"at":1}`,
	} {
		_, err := s.Open(ctx, pass, 0, []byte(mark))
		var wrong *stream.MarkError
		require.ErrorAs(t, err, &wrong, mark)
		require.Equal(t, "Lines", wrong.Operator)
	}
}

func TestLinesMistakes(t *testing.T) {
	for _, c := range []struct {
		files []source.Source
		o     stream.LinesOptions
		want  string
	}{
		{nil, stream.LinesOptions{}, "files is empty"},
		{files("a"), stream.LinesOptions{Parts: -1}, "Parts is -1"},
		{files("a"), stream.LinesOptions{Parts: math.MaxInt}, "Parts is 9223372036854775807, want 0 (files are whole) to 1048576"},
		{files("a"), stream.LinesOptions{Shards: -1}, "Shards is -1"},
		{files("a", "b"), stream.LinesOptions{Shards: 7, Parts: 3}, "Shards is 7, want 0 (one for each part of a file) to 6"},
		{[]source.Source{nil}, stream.LinesOptions{}, "files[0] is <nil>"},
	} {
		s := stream.Lines(c.files, c.o)
		require.ErrorContains(t, s.Err(), c.want)
	}
	require.NoError(t, stream.Lines(files("a", "b"), stream.LinesOptions{Parts: 1 << 20, Shards: 3}).Err())
}
