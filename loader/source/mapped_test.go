//go:build linux || darwin

package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/loader/source"
)

// Wherever a file is cut off, what is left is read, and what is gone is an error: inside
// of a page nothing faults, and zeros are there in place of it.
func TestAMappedFileIsCutOffAnywhere(t *testing.T) {
	page := os.Getpagesize()
	data := random(4 * page)
	for i := range data {
		data[i] |= 1 // no zeros
	}
	for _, to := range []int{0, 1, page - 1, page, page + 1, 2*page + page/2, 4*page - 1} {
		path := write(t, data)
		f, err := source.Mapped(source.Path(path)).Open(t.Context())
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, int64(to)))
		readChanged(t, f, data, to)
		for lo := 0; lo < len(data); lo += 97 {
			p := make([]byte, min(300, len(data)-lo))
			n, err := f.ReadAt(t.Context(), p, int64(lo))
			want := data[lo:max(lo, min(lo+len(p), to))]
			require.Equal(t, string(want), string(p[:n]), "%d bytes, read at %d", to, lo)
			require.Equal(t, n == len(p), err == nil)
			require.Equal(t, n < len(p), errors.Is(err, source.ErrChanged))
		}
		require.NoError(t, f.Close())
	}
}

func TestZerosInAMappedFileAreData(t *testing.T) {
	data := make([]byte, 3*os.Getpagesize()+10)
	f, err := source.Mapped(source.Path(write(t, data))).Open(t.Context())
	require.NoError(t, err)
	for lo := 0; lo < len(data); lo += 100 {
		p := bytes.Repeat([]byte{1}, min(100, len(data)-lo))
		require.NoError(t, source.ReadFull(t.Context(), f, p, int64(lo)))
		require.Equal(t, data[:len(p)], p)
	}
	require.NoError(t, f.Close())
}

// A file is truncated while four goroutines read it and four another, and closed beside
// them. A read has its own bytes or an error, and the process lives.
func TestAMappedFileIsTruncatedUnderItsReaders(t *testing.T) {
	page := os.Getpagesize()
	data := random(64 * page)
	for round := range 10 {
		path, other := write(t, data), write(t, data)
		f, err := source.Mapped(source.Path(path)).Open(t.Context())
		require.NoError(t, err)
		unharmed, err := source.Mapped(source.Path(other)).Open(t.Context())
		require.NoError(t, err)
		cut := int64(10*page + round*100)

		var group sync.WaitGroup
		first := make(chan bool, 8)
		check := func(f source.File, seed uint64, acceptable func(off, end int64, err error) bool) {
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			for i := 0; ; i++ {
				if i == 20 {
					first <- true
				}
				lo := r.Int64N(int64(len(data) - 2*page))
				p := make([]byte, 1+r.IntN(2*page))
				n, err := f.ReadAt(context.Background(), p, lo)
				switch {
				case !bytes.Equal(p[:n], data[lo:lo+int64(n)]):
					t.Errorf("other bytes at %d", lo)
					return
				case errors.Is(err, fs.ErrClosed):
					return
				case err != nil && !acceptable(lo, lo+int64(len(p)), err):
					t.Errorf("at %d: %v", lo, err)
					return
				}
			}
		}
		for i := range uint64(4) {
			group.Go(func() {
				check(f, i, func(_, end int64, err error) bool {
					var told *source.Error
					return errors.As(err, &told) && told.Source == path && told.Offset <= end && end > cut && errors.Is(err, source.ErrChanged)
				})
			})
			group.Go(func() { check(unharmed, i, func(int64, int64, error) bool { return false }) })
		}
		for range 8 {
			<-first
		}
		require.NoError(t, os.Truncate(path, cut))
		_, err = f.ReadAt(t.Context(), make([]byte, 10), cut)
		require.ErrorIs(t, err, source.ErrChanged)
		require.NoError(t, f.Close())
		require.NoError(t, unharmed.Close())
		group.Wait()
	}
}

func TestAMappingLongerThanItsFile(t *testing.T) {
	page := os.Getpagesize()
	data := random(10 * page)
	f, err := source.MapLonger(write(t, data), int64(80*page))
	require.NoError(t, err)
	p := make([]byte, 2*page)
	require.NoError(t, source.ReadFull(t.Context(), f, p, int64(8*page)))
	require.Equal(t, data[8*page:], p)
	for _, off := range []int{9 * page, 10 * page, 79 * page} {
		n, err := f.ReadAt(t.Context(), p, int64(off))
		require.Equal(t, max(0, 10*page-off), n)
		require.ErrorIs(t, err, source.ErrChanged)
	}
	require.NoError(t, f.Close())
}

func TestMoreThanFourGigabytes(t *testing.T) {
	const at, size = 4<<30 + 12345, 5 << 30
	path := filepath.Join(t.TempDir(), "sparse")
	file, err := os.Create(path)
	require.NoError(t, err)
	if err := file.Truncate(size); err != nil {
		t.Skipf("no file of 5 GiB here: %v", err)
	}
	_, err = file.WriteAt([]byte("far behind"), at)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	for kind, open := range kinds {
		f, err := open(path).Open(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, int64(size), f.Size())
		p := make([]byte, 12)
		require.NoError(t, source.ReadFull(t.Context(), f, p, at-1))
		require.Equal(t, "\x00far behind\x00", string(p), kind)
		require.NoError(t, source.ReadFull(t.Context(), f, p, size-12))
		require.Equal(t, make([]byte, 12), p)
		require.NoError(t, f.Close())
	}
}

// A fault that is not the mapping's is the caller's: its memory was not there.
func TestAFaultElsewhereIsNoErrorOfTheFile(t *testing.T) {
	f, err := source.Mapped(source.Path(write(t, random(100)))).Open(t.Context())
	require.NoError(t, err)
	nowhere, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(nowhere)) }()
	require.Panics(t, func() { _, _ = f.ReadAt(t.Context(), nowhere[:10], 0) })
	require.False(t, debug.SetPanicOnFault(false), "it is as it was before")
	require.NoError(t, f.Close(), "and the File isn't held")
}

// Nothing is left of files that were opened, read, and closed.
func TestMappingsAreGivenBack(t *testing.T) {
	maps := func() int {
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip("no /proc here")
		}
		return bytes.Count(text, []byte(t.Name()))
	}
	path := source.Path(write(t, random(1000)))
	for i := range 100 {
		f, err := source.Mapped(path).Open(t.Context())
		require.NoError(t, err)
		require.NoError(t, source.ReadFull(t.Context(), f, make([]byte, 10), int64(i)))
		if i == 0 {
			require.Equal(t, 1, maps())
		}
		require.NoError(t, f.Close())
	}
	require.Zero(t, maps())
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err == nil {
			to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%s", entry.Name()))
			require.NotEqual(t, path.Name(), to)
		}
	}
}
