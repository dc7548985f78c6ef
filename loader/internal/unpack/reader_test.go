package unpack_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
)

func open(t testing.TB, data []byte) source.File {
	f, err := source.FS(fstest.MapFS{"a": {Data: data}}, "a").Open(t.Context())
	require.NoError(t, err)
	return f
}

func packed(t testing.TB, kind unpack.Kind, data []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch kind {
	case unpack.Plain:
		return data
	case unpack.Gzip:
		w = gzip.NewWriter(&b)
	case unpack.Zlib:
		w = zlib.NewWriter(&b)
	case unpack.Zstd:
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		require.NoError(t, err)
		w = z
	}
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

var kinds = []unpack.Kind{unpack.Plain, unpack.Gzip, unpack.Zlib, unpack.Zstd}

// given is what New is told: of all but zlib nothing.
func given(kind unpack.Kind) unpack.Kind {
	if kind == unpack.Zlib {
		return kind
	}
	return unpack.Plain
}

// Contents are read, appended and passed over, in pieces of any size.
func TestReader(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(i>>8) ^ byte(random.IntN(4))
	}
	for _, kind := range kinds {
		r, err := unpack.New(t.Context(), open(t, packed(t, kind, want)), "test", given(kind))
		require.NoError(t, err)
		require.Equal(t, kind, r.Kind())
		at := 0
		for at < len(want) {
			require.EqualValues(t, at, r.Offset())
			n := min(random.IntN(100_000), len(want)-at)
			switch random.IntN(3) {
			case 0:
				require.NoError(t, r.Skip(t.Context(), int64(n)))
			case 1:
				p := make([]byte, n)
				m, err := r.Full(t.Context(), p)
				require.NoError(t, err)
				require.Equal(t, n, m)
				require.Equal(t, want[at:at+n], p)
			case 2:
				p, err := r.Append(t.Context(), []byte("x"), int64(n))
				require.NoError(t, err)
				require.Equal(t, want[at:at+n], p[1:])
			}
			at += n
		}
		_, err = r.Full(t.Context(), make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.Equal(t, io.ErrUnexpectedEOF, r.Skip(t.Context(), 1))
		_, err = r.Append(t.Context(), nil, 1<<40)
		require.Equal(t, io.EOF, err)
		r.Close()
	}
}

// Files put together are one, zeros behind are none, and anything else is no end.
func TestParts(t *testing.T) {
	for _, kind := range []unpack.Kind{unpack.Gzip, unpack.Zstd} {
		both := append(packed(t, kind, []byte("one ")), packed(t, kind, []byte("two"))...)
		read := func(data []byte) (string, error) {
			r, err := unpack.New(t.Context(), open(t, data), "test", unpack.Plain)
			require.NoError(t, err)
			defer r.Close()
			text, err := r.Append(t.Context(), nil, 7)
			if err == nil {
				_, err = r.Full(t.Context(), make([]byte, 1))
			}
			return string(text), err
		}
		text, err := read(both)
		require.Equal(t, io.EOF, err)
		require.Equal(t, "one two", text)
		if kind == unpack.Gzip {
			text, err = read(append(bytes.Clone(both), make([]byte, 512)...))
			require.Equal(t, io.EOF, err)
			require.Equal(t, "one two", text)
		}
		_, err = read(append(bytes.Clone(both), "garbage"...))
		var format *source.FormatError
		require.ErrorAs(t, err, &format, kind)
		require.GreaterOrEqual(t, format.Offset, int64(len(both)))
	}
}

// Data that is cut off or changed is an error with the file, and never the end.
func TestDamage(t *testing.T) {
	want := bytes.Repeat([]byte("some text, "), 1000)
	for _, kind := range kinds[1:] {
		whole := packed(t, kind, want)
		for n := 4; n < len(whole); n++ {
			var format *source.FormatError
			r, err := unpack.New(t.Context(), open(t, whole[:n]), "test", given(kind))
			if err == nil {
				_, err = r.Append(t.Context(), nil, int64(len(want)))
				if err == nil {
					_, err = r.Full(t.Context(), make([]byte, 1))
				}
				r.Close()
			}
			require.ErrorAs(t, err, &format, "%s, %d of %d", kind, n, len(whole))
			require.Equal(t, "a", format.File)
		}
	}
}

// What a file itself fails with is passed on as it is.
func TestTheFilesOwnErrors(t *testing.T) {
	for _, kind := range kinds {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		data := make([]byte, 1<<20)
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		f := open(t, packed(t, kind, data))
		_, err := unpack.New(cancelled, f, "test", given(kind))
		require.ErrorIs(t, err, context.Canceled)
		r, err := unpack.New(t.Context(), f, "test", given(kind))
		require.NoError(t, err)
		_, err = r.Full(cancelled, make([]byte, len(data)))
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, f.Close())
		r.Close()
	}
}

// A context that is done ends reading at once, though what is left of the file lies in memory: a
// few bytes of it may be gigabytes of contents.
func TestCancelledWithinWhatWasRead(t *testing.T) {
	for _, kind := range kinds {
		r, err := unpack.New(t.Context(), open(t, packed(t, kind, make([]byte, 100_000))), "test", given(kind))
		require.NoError(t, err)
		_, err = r.Full(t.Context(), make([]byte, 1000))
		require.NoError(t, err)
		cause := errors.New("enough")
		cancelled, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		n, err := r.Full(cancelled, make([]byte, 1000))
		require.ErrorIs(t, err, cause, kind)
		require.Zero(t, n)
		require.ErrorContains(t, err, "source: read a at byte ")
		_, err = r.Append(cancelled, nil, 1000)
		require.ErrorIs(t, err, cause, kind)
		if kind != unpack.Plain {
			require.ErrorIs(t, r.Skip(cancelled, 1000), cause, kind)
		}
		n, err = r.Full(t.Context(), make([]byte, 99_000))
		require.NoError(t, err, kind)
		require.Equal(t, 99_000, n)
		r.Close()
	}
}
