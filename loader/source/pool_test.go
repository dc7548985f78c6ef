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
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/source/sourcetest"
)

// counted is a Source that knows how often it was opened, and how many files are open of
// all that share a count.
type counted struct {
	source.Source
	opened *atomic.Int64
	open   *gauge
	before func() error // in Open
}

type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) {
	now := g.now.Add(n)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
		continue
	}
}

func (c counted) Open(ctx context.Context) (source.File, error) {
	c.opened.Add(1)
	if c.before != nil {
		if err := c.before(); err != nil {
			return nil, err
		}
	}
	f, err := c.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	c.open.add(1)
	return &countedFile{File: f, open: c.open}, nil
}

type countedFile struct {
	source.File
	open *gauge
	once sync.Once
}

func (f *countedFile) Close() error {
	f.once.Do(func() { f.open.add(-1) })
	return f.File.Close()
}

// folder has n files, each of its number as a text.
func folder(t *testing.T, n int) (sources []counted) {
	dir, open := t.TempDir(), &gauge{}
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "%06d", i), 0o600))
		sources = append(sources, counted{Source: source.Path(path), opened: &atomic.Int64{}, open: open})
	}
	return sources
}

func TestAPoolsFilesKeepThePromises(t *testing.T) {
	data := random(50_000)
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			pool := source.NewPool(1)
			sourcetest.Run(t, pool.Source(open(write(t, data))), data)
			require.Zero(t, pool.Open())
		})
	}
	_, err := source.NewPool(0).Source(source.Path("missing")).Open(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Many goroutines read many files, of which few are open.
func TestAPoolBoundsTheOpenFiles(t *testing.T) {
	const files, readers = 30, 4
	for _, limit := range []int{1, 2, 7, 30, 100} {
		pool, sources := source.NewPool(limit), folder(t, files)
		var opened []source.File
		for _, s := range sources {
			f, err := pool.Source(s).Open(t.Context())
			require.NoError(t, err)
			opened = append(opened, f)
			require.LessOrEqual(t, pool.Open(), limit)
		}
		var group sync.WaitGroup
		errs := make([]error, readers)
		for i := range readers {
			group.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(limit)))
				p := make([]byte, 6)
				for range 500 {
					n := r.IntN(files)
					err := source.ReadFull(context.Background(), opened[n], p, 0)
					if want := fmt.Sprintf("%06d", n); err == nil && string(p) != want {
						err = fmt.Errorf("%s of file %s", p, want)
					}
					errs[i] = errors.Join(errs[i], err)
				}
			})
		}
		group.Wait()
		require.NoError(t, errors.Join(errs...))
		require.LessOrEqual(t, sources[0].open.most.Load(), int64(limit+readers))
		require.Equal(t, min(limit, files), pool.Open())
		for i, f := range opened {
			require.NoError(t, f.Close())
			if limit >= files {
				require.EqualValues(t, 1, sources[i].opened.Load())
			}
		}
		require.Zero(t, pool.Open())
		require.Zero(t, sources[0].open.now.Load())
	}
}

func TestAPoolKeepsWhatIsReadOften(t *testing.T) {
	pool, sources := source.NewPool(3), folder(t, 100)
	often, err := pool.Source(sources[0]).Open(t.Context())
	require.NoError(t, err)
	defer often.Close()
	for _, s := range sources[1:] {
		f, err := pool.Source(s).Open(t.Context())
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, source.ReadFull(t.Context(), often, make([]byte, 1), 0))
	}
	require.EqualValues(t, 1, sources[0].opened.Load())
}

func TestAFileIsAnotherWhenItIsOpenedAgain(t *testing.T) {
	pool, sources := source.NewPool(1), folder(t, 2)
	a, err := pool.Source(sources[0]).Open(t.Context())
	require.NoError(t, err)
	defer a.Close()
	read := func() error { return source.ReadFull(t.Context(), a, make([]byte, 1), 0) }
	evict := func() {
		b, err := pool.Source(sources[1]).Open(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
	evict()
	require.NoError(t, read())
	require.NoError(t, os.Chtimes(a.Name(), time.Time{}, time.Unix(1, 0)))
	require.NoError(t, read(), "it is open yet")
	evict()
	err = read()
	require.ErrorIs(t, err, source.ErrChanged)
	require.ErrorContains(t, err, "source: open "+a.Name()+": the file has changed since it was opened: its version was 6-")
	require.NoError(t, os.Remove(a.Name()))
	require.ErrorIs(t, read(), fs.ErrNotExist)
	require.Zero(t, sources[0].open.now.Load())
}

// While one goroutine opens the file another waits for it, as long as its context lets it;
// what becomes of the first doesn't matter to the second.
func TestAnOpenThatHangsOrFails(t *testing.T) {
	for name, end := range map[string]func() error{
		"fails":   func() error { return errors.New("this time") },
		"panics":  func() error { panic("this time") },
		"goexits": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			sources := folder(t, 2)
			synctest.Test(t, func(t *testing.T) {
				pool, returned := source.NewPool(1), false
				slow := sources[0]
				slow.before = func() error {
					if slow.opened.Load() == 2 {
						time.Sleep(time.Hour)
						return end()
					}
					return nil
				}
				f, err := pool.Source(slow).Open(t.Context())
				require.NoError(t, err)
				other, err := pool.Source(sources[1]).Open(t.Context()) // in the place of f
				require.NoError(t, err)
				go func() {
					defer func() { _ = recover() }()
					_, err := f.ReadAt(t.Context(), make([]byte, 1), 0)
					require.EqualError(t, err, "this time")
					returned = true
				}()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = f.ReadAt(ctx, make([]byte, 1), 0)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NoError(t, source.ReadFull(t.Context(), other, make([]byte, 1), 0), "another file needs no waiting")

				require.NoError(t, source.ReadFull(t.Context(), f, make([]byte, 1), 0))
				require.EqualValues(t, 3, slow.opened.Load())
				synctest.Wait()
				require.Equal(t, name == "fails", returned)
				require.NoError(t, f.Close())
				require.NoError(t, other.Close())
			})
			require.Zero(t, sources[0].open.now.Load())
		})
	}
}

func TestCloseWhileTheFileIsOpened(t *testing.T) {
	sources := folder(t, 2)
	synctest.Test(t, func(t *testing.T) {
		pool, slow := source.NewPool(1), sources[0]
		slow.before = func() error {
			if slow.opened.Load() > 1 {
				time.Sleep(time.Hour)
			}
			return nil
		}
		f, err := pool.Source(slow).Open(t.Context())
		require.NoError(t, err)
		other, err := pool.Source(sources[1]).Open(t.Context())
		require.NoError(t, err)
		go func() {
			time.Sleep(time.Minute)
			_ = f.Close()
		}()
		_, err = f.ReadAt(t.Context(), make([]byte, 1), 0)
		require.ErrorIs(t, err, fs.ErrClosed)
		require.NoError(t, other.Close())
	})
	require.Zero(t, sources[0].open.now.Load())
}

func TestASourceWithoutAFile(t *testing.T) {
	_, err := source.NewPool(1).Source(nothing{}).Open(t.Context())
	require.EqualError(t, err, "source: open nothing: Open returned neither a File nor an error")
}

type nothing struct{}

func (nothing) Name() string                              { return "nothing" }
func (nothing) Open(context.Context) (source.File, error) { return nil, nil }

func TestReadingThroughAPoolAllocatesNothing(t *testing.T) {
	f, err := source.NewPool(1).Source(source.Path(write(t, random(1000)))).Open(t.Context())
	require.NoError(t, err)
	defer f.Close()
	p, ctx := make([]byte, 1000), t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = f.ReadAt(ctx, p, 0) }))
	require.True(t, bytes.Equal(p, random(1000)))
}
