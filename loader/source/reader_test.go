package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
)

// text opens a file of that text.
func text(t testing.TB, contents string) source.File {
	t.Helper()
	f, err := source.FS(fstest.MapFS{"text": {Data: []byte(contents)}}, "text").Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// lines reads all lines, those that are too long as "!" and their offset.
func lines(t *testing.T, r *source.Reader) (all []string) {
	for {
		line, err := r.Line(t.Context())
		var long *source.LineError
		switch {
		case err == io.EOF:
			_, err = r.Line(t.Context())
			require.True(t, err == io.EOF, "for ever")
			return all
		case errors.As(err, &long):
			all = append(all, fmt.Sprintf("!%d", long.Offset))
		default:
			require.NoError(t, err)
			all = append(all, string(line))
		}
	}
}

func TestLines(t *testing.T) {
	for text1, want := range map[string][]string{
		"":                {},
		"\n":              {""},
		"\r\n":            {""},
		"\n\n":            {"", ""},
		"a":               {"a"},
		"a\n":             {"a"},
		"a\r\nb":          {"a", "b"},
		"a\r\rb\n":        {"a\r\rb"},
		"a\nb\r":          {"a", "b"},
		"a\r":             {"a"},
		"\r\r\n":          {"\r"},
		"1234567\n":       {"1234567"},
		"1234567\r\n":     {"1234567"},
		"1234567":         {"1234567"},
		"1234567\r":       {"1234567"},
		"12345678\n":      {"!0"},
		"12345678":        {"!0"},
		"1234567\rx\na":   {"!0", "a"},
		"a\n12345678\nb":  {"a", "!2", "b"},
		"12345678\r\n\nb": {"!0", "", "b"},
		strings.Repeat("x", 100) + "\n" + strings.Repeat("y", 100) + "\nz": {"!0", "!101", "z"},
	} {
		for _, read := range []int{1, 2, 3, 5, 8, 9, 10, 1000} {
			r := source.NewReader(text(t, text1), 0, source.Options{ReadBytes: read, MaxLine: 7})
			require.Equal(t, append([]string{}, want...), append([]string{}, lines(t, r)...), "%q by %d", text1, read)
			require.EqualValues(t, len(text1), r.Offset())
		}
	}
}

// Any cut of a file into parts gives each line once, in the part that it begins in.
func TestPartsOfAFileHaveEachLineOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range random.IntN(8) {
			fmt.Fprintf(&b, "%s%s", strings.Repeat("x", random.IntN(12)), []string{"\n", "\r\n", "\n\n"}[random.IntN(3)])
		}
		b.WriteString([]string{"", "end"}[random.IntN(2)])
		f := text(t, b.String())
		o := source.Options{ReadBytes: 1 + random.IntN(9), MaxLine: 9}
		whole := lines(t, source.NewReader(f, 0, o))

		parts := 1 + random.IntN(5)
		var got []string
		r := source.NewReader(f, 0, o)
		for i := range parts {
			lo, hi := f.Size()*int64(i)/int64(parts), f.Size()*int64(i+1)/int64(parts)
			require.NoError(t, r.SeekLine(t.Context(), lo))
			for r.Offset() < hi {
				begin := r.Offset()
				line, err := r.Line(t.Context())
				var long *source.LineError
				if errors.As(err, &long) {
					require.Equal(t, begin, long.Offset)
					got = append(got, fmt.Sprintf("!%d", long.Offset))
					continue
				}
				require.NoError(t, err)
				require.True(t, bytes.HasPrefix([]byte(b.String()[begin:]), line))
				got = append(got, string(line))
			}
		}
		require.Equal(t, whole, got, "%q", b.String())
	}
}

// moody is a File whose reads fail now and then, or bring less than there is.
type moody struct {
	source.File
	random *rand.Rand
	err    error
}

func (m moody) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if m.random.IntN(3) == 0 {
		return 0, m.err
	}
	n, err := m.File.ReadAt(ctx, p[:1+m.random.IntN(len(p))], off)
	if m.random.IntN(2) == 0 && err == nil {
		err = m.err
	}
	return n, err
}

func TestLinesAfterErrorsOfTheFile(t *testing.T) {
	const all = "some\nlines, one of which is far too long\r\n\nand an end"
	own := errors.New("not now")
	for seed := range uint64(200) {
		f := moody{text(t, all), rand.New(rand.NewPCG(seed, 0)), own}
		r := source.NewReader(f, 0, source.Options{ReadBytes: 6, MaxLine: 10})
		if seed%2 == 0 {
			for r.SeekLine(t.Context(), 1) != nil { // until it succeeds
				continue
			}
			for r.SeekLine(t.Context(), 0) != nil {
				continue
			}
		}
		var got []string
		for {
			line, err := r.Line(t.Context())
			var long *source.LineError
			if err == io.EOF {
				break
			}
			switch {
			case errors.Is(err, own):
				continue
			case errors.As(err, &long):
				require.EqualError(t, err, "source: text: the line at byte 5 has more than 10 bytes")
				line = []byte("!")
			default:
				require.NoError(t, err)
			}
			got = append(got, string(line))
		}
		require.Equal(t, []string{"some", "!", "", "and an end"}, got)
	}
}

// odd is a File that returns what no File may.
type odd struct {
	source.File
	n   int
	err error
}

func (o odd) ReadAt(context.Context, []byte, int64) (int, error) { return o.n, o.err }

func TestLinesOfAFileThatIsWrong(t *testing.T) {
	f := text(t, "some text")
	_, err := source.NewReader(odd{f, 0, nil}, 0, source.Options{}).Line(t.Context())
	require.ErrorIs(t, err, io.ErrNoProgress)
	_, err = source.NewReader(odd{f, 0, io.EOF}, 0, source.Options{}).Line(t.Context())
	require.EqualError(t, err, "source: read text at byte 0: unexpected EOF")
	for _, n := range []int{-1, 1 << 30} {
		_, err = source.NewReader(odd{f, n, nil}, 0, source.Options{}).Line(t.Context())
		require.ErrorContains(t, err, "source: text: ReadAt returned")
	}
	_, err = source.NewReader(f, -5, source.Options{}).Line(t.Context())
	require.ErrorContains(t, err, "negative")
	_, err = source.NewReader(f, 1<<62, source.Options{}).Line(t.Context())
	require.True(t, err == io.EOF)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := source.NewReader(f, 0, source.Options{})
	_, err = r.Line(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, r.SeekLine(ctx, 3), context.Canceled)
	require.NoError(t, r.SeekLine(t.Context(), 1<<62))
	require.NoError(t, r.SeekLine(t.Context(), 0))
	line, err := r.Line(t.Context())
	require.NoError(t, err)
	require.Equal(t, "some text", string(line))
}

func TestLinesAllocateNothing(t *testing.T) {
	f := text(t, strings.Repeat("a line of text\n", 10_000))
	r, ctx := source.NewReader(f, 0, source.Options{ReadBytes: 1 << 10}), t.Context()
	_, err := r.Line(ctx)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(5000, func() { _, _ = r.Line(ctx) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Reset(f, 5); _, _ = r.Line(ctx) }))
}

func BenchmarkLine(b *testing.B) {
	for _, length := range []int{80, 1500} {
		b.Run(fmt.Sprintf("bytes=%d", length), func(b *testing.B) {
			f := text(b, strings.Repeat(strings.Repeat("x", length-1)+"\n", (64<<20)/length))
			r, ctx := source.NewReader(f, 0, source.Options{}), b.Context()
			b.SetBytes(int64(length))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Line(ctx); err == io.EOF {
					r.Reset(f, 0)
				}
			}
		})
	}
}
