// Package sourcetest has the test that every source.Source passes.
package sourcetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
)

// Run tests that s keeps what source.Source and source.File promise. contents are the
// bytes that it has. Best run with the race detector.
func Run(t *testing.T, s source.Source, contents []byte) {
	c := conformance{s, contents}
	t.Run("open", c.open)
	t.Run("reads", c.reads)
	t.Run("contexts", c.contexts)
	t.Run("concurrent reads", c.concurrent)
	t.Run("close beside reads", c.closing)
}

type conformance struct {
	source   source.Source
	contents []byte
}

// file opens the source until the test ends.
func (c conformance) file(t *testing.T) source.File {
	f, err := c.source.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func (c conformance) open(t *testing.T) {
	f, other := c.file(t), c.file(t)
	require.NotEmpty(t, c.source.Name())
	require.Equal(t, c.source.Name(), f.Name())
	require.EqualValues(t, len(c.contents), f.Size())
	info, err := source.Stat(t.Context(), c.source)
	require.NoError(t, err)
	require.Equal(t, source.Info{Size: f.Size(), Version: f.Version()}, info)
	require.Equal(t, f.Version(), other.Version())

	require.NoError(t, other.Close())
	require.NoError(t, other.Close(), "again")
	all := make([]byte, f.Size())
	require.NoError(t, source.ReadFull(t.Context(), f, all, 0), "another File is open yet")
	require.Equal(t, string(c.contents), string(all))
}

func (c conformance) reads(t *testing.T) {
	f := c.file(t)
	size := int64(len(c.contents))
	for _, off := range []int64{0, 1, size / 2, size - 1, size, size + 1, math.MaxInt64} {
		for _, length := range []int64{0, 1, 7, size / 2, size, size + 1} {
			if off < 0 {
				continue
			}
			want := c.contents[min(off, size):min(size, min(off, size)+length)]
			p := make([]byte, length)
			n, err := f.ReadAt(t.Context(), p, off)
			require.Equal(t, string(want), string(p[:n]), "%d bytes at %d", length, off)
			full := source.ReadFull(t.Context(), f, p, off)
			if n == len(p) {
				require.NoError(t, err, "%d bytes at %d", length, off)
				require.NoError(t, full)
				continue
			}
			require.True(t, err == io.EOF, "%d bytes at %d: %v", length, off, err)
			c.isError(t, full, off+int64(n), io.ErrUnexpectedEOF)
		}
	}
	n, err := f.ReadAt(t.Context(), make([]byte, 1), -1)
	require.Zero(t, n)
	c.isError(t, err, -1, nil)
}

// isError checks an *Error of a read.
func (c conformance) isError(t *testing.T, err error, off int64, cause error) {
	var told *source.Error
	require.ErrorAs(t, err, &told)
	require.Equal(t, c.source.Name(), told.Source)
	require.Equal(t, "read", told.Op)
	require.Equal(t, off, told.Offset)
	require.NotErrorIs(t, err, io.EOF)
	if cause != nil {
		require.ErrorIs(t, err, cause)
	}
}

func (c conformance) contexts(t *testing.T) {
	f := c.file(t)
	cause := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	n, err := f.ReadAt(ctx, make([]byte, 1), 0)
	require.Zero(t, n)
	c.isError(t, err, 0, cause)
	_, err = c.source.Open(ctx)
	require.ErrorIs(t, err, cause)
	_, err = source.Stat(ctx, c.source)
	require.ErrorIs(t, err, cause)
	_, err = f.ReadAt(t.Context(), nil, 0)
	require.NoError(t, err, "a context that is done harms no other read")
}

// random reads a part chosen at random.
func (c conformance) random(ctx context.Context, f source.File, r *rand.Rand) error {
	size := len(c.contents)
	lo := r.IntN(size + 1)
	p := make([]byte, r.IntN(size-lo+1))
	err := source.ReadFull(ctx, f, p, int64(lo))
	if err == nil && string(p) != string(c.contents[lo:lo+len(p)]) {
		return errors.New("other bytes than the file's")
	}
	return err
}

const readers, rounds = 4, 50

func (c conformance) concurrent(t *testing.T) {
	f := c.file(t)
	errs := make([]error, readers)
	var group sync.WaitGroup
	for i := range readers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for range rounds {
				errs[i] = errors.Join(errs[i], c.random(t.Context(), f, r))
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
}

func (c conformance) closing(t *testing.T) {
	f := c.file(t)
	errs := make([]error, readers)
	var group sync.WaitGroup
	for i := range readers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for errs[i] == nil {
				errs[i] = c.random(t.Context(), f, r)
			}
		})
	}
	require.NoError(t, f.Close())
	group.Wait()
	for _, err := range errs {
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}
