package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/leat-go/leat/loader"
)

// FileCacheOptions tunes a FileCache. The zero value is ready to use.
type FileCacheOptions struct {
	// MaxBytes is how many bytes the files of all shards may have together, those that this
	// process has looked at. A shard that has no room any more is left absent. 0 means no
	// limit.
	MaxBytes int64
}

// Format writes and reads a value of a FileCache.
type Format[T any] struct {
	// Append appends a value to dst.
	Append func(dst []byte, value T) ([]byte, error)
	// Parse makes a value of what Append has appended. src is lent until it returns.
	Parse func(src []byte) (T, error)
}

// FileCache keeps the values of a Stream in files of a directory, one for each shard, for this
// run and later ones. See CacheFile.
type FileCache[T any] struct {
	s         Stream[T]
	directory string
	version   string
	format    Format[T]
	options   FileCacheOptions
	err       error

	bytes, reads atomic.Int64
	shards       []fileShard
	mu           sync.Mutex
	reason       string
	failed       *CacheError
}

// fileShard is what is known of the file of a shard.
type fileShard struct {
	mu       sync.Mutex
	looked   bool       // whether the directory was asked
	index    *fileIndex // of the file, nil if there is none to be used
	building bool       // whether a reader builds it
}

// CacheFile keeps the values of s in files of directory, which exists. A shard's file is whole
// or absent: it is built under another name by the first reader that begins at the shard's
// beginning, and gets its own when that comes to the shard's end. A reader that is left in the
// middle leaves none, and the next tries again; Build reads all that are absent. So ranks that
// read some of the shards make the files of these. Nothing has to be cleaned up after a process
// that was killed, and several may build at once.
//
// As with Cache all passes have the same values, and what is to be random belongs behind it.
// Records that fail are kept too, as the text of their errors, unless these are temporary:
// then the shard's file is left absent. Marks are of s and of the files both, so that a run
// goes on from them with the files or without.
//
// A file is used if it was made with the same version, number of shards and fingerprint of s;
// else it is built anew, and Stats says why. One that is no cache at all is the error of Open.
// version, which may not be empty, must be changed by hand when something changes that no
// fingerprint covers: what the functions of s do, with all that they refer to.
//
// Where a file can't be written, because the disk is full for example, or is damaged, values
// are read of s as if there were no cache, and Stats and Build tell the error, a *CacheError.
func CacheFile[T any](s Stream[T], directory, version string, format Format[T], o FileCacheOptions) *FileCache[T] {
	return &FileCache[T]{
		s: s, directory: directory, version: version, format: format, options: o,
		shards: make([]fileShard, max(0, s.shards)),
		err: errors.Join(
			check(directory != "", "CacheFile", "directory", "empty", "the name of a directory"),
			check(version != "", "CacheFile", "version", "empty", "a version, since no fingerprint covers what functions do"),
			needs(format.Append == nil, "CacheFile", "format.Append"),
			needs(format.Parse == nil, "CacheFile", "format.Parse"),
			check(o.MaxBytes >= 0, "CacheFile", "MaxBytes", o.MaxBytes, "0 (no limit) or more")),
	}
}

// Stream is the values, of the files where these are whole and else of the stream below.
func (c *FileCache[T]) Stream() Stream[T] { return then(c.s, c.open, c.err).as("CacheFile") }

// FileCacheStats is what a FileCache holds.
type FileCacheStats struct {
	// Shards is how many there are, Whole how many of them have a file, as far as this
	// process has looked.
	Shards, Whole int
	// Bytes is what the files take, those under way too.
	Bytes int64
	// Reads is how many values were read of the stream below.
	Reads int64
	// Reason is why a shard's file was not used, or is absent, the last that is known; empty
	// if there is none.
	Reason string
	// Err is the last failure of a file, or damage in one; nil if there is none. It is a
	// *CacheError.
	Err error
}

// CacheError is a failure of a cache's file.
type CacheError struct {
	// Path is the file.
	Path string
	// Err is what has failed.
	Err error
}

// Error implements error.
func (e *CacheError) Error() string { return fmt.Sprintf("stream: cache %s: %v", e.Path, e.Err) }

// Unwrap returns Err.
func (e *CacheError) Unwrap() error { return e.Err }

// Stats is what is held now.
func (c *FileCache[T]) Stats() FileCacheStats {
	s := FileCacheStats{Shards: len(c.shards), Bytes: c.bytes.Load(), Reads: c.reads.Load()}
	for i := range c.shards {
		if c.shards[i].whole() != nil {
			s.Whole++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Reason = c.reason
	if c.failed != nil {
		s.Err = c.failed
	}
	return s
}

// Build reads all shards that have no file, several at once, and returns when each has one. The
// error is a *CacheError with the reason why one has none, or ctx's.
func (c *FileCache[T]) Build(ctx context.Context) error {
	if err := c.Stream().Err(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for shard := range c.shards {
		group.Go(func() error { return c.build(ctx, shard) })
	}
	return group.Wait()
}

// build reads a shard to its end, unless it has a file.
func (c *FileCache[T]) build(ctx context.Context, shard int) (err error) {
	defer recovered(&err)
	r, err := c.reader(ctx, shard, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var item Item[T]
	for stuck := 0; c.shards[shard].whole() == nil; {
		if r.up == nil || !r.building() {
			return c.absent(shard)
		}
		failed := r.failed
		ok, err := r.Next(ctx, &item)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case ok || r.ended || r.failed > failed || err == loader.Flush:
			stuck = 0
		default:
			if stuck++; stuck == 100 { // the reader is broken
				return err
			}
		}
	}
	return nil
}

// absent is why a shard has no file though it was read to its end.
func (c *FileCache[T]) absent(shard int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil && c.failed.Path == c.path(shard) {
		return c.failed
	}
	return &CacheError{Path: c.path(shard), Err: errors.New(c.reason)}
}

// path is a shard's file.
func (c *FileCache[T]) path(shard int) string {
	return filepath.Join(c.directory, fmt.Sprintf("%d-of-%d.cache", shard, len(c.shards)))
}

// note notes why a shard's file is absent.
func (c *FileCache[T]) note(shard int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reason = fmt.Sprintf("shard %d: %s", shard, reason)
}

// fail notes a failure of a shard's file.
func (c *FileCache[T]) fail(shard int, err error) {
	c.note(shard, err.Error())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = &CacheError{Path: c.path(shard), Err: err}
}

// reserve takes bytes of the limit, if there are so many.
func (c *FileCache[T]) reserve(bytes int64) bool {
	if used := c.bytes.Add(bytes); c.options.MaxBytes == 0 || used <= c.options.MaxBytes {
		return true
	}
	c.bytes.Add(-bytes)
	return false
}

// whole is the index of the shard's file, nil if it is not known to have one.
func (s *fileShard) whole() *fileIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index
}

// look asks the directory for a shard's file, once. The error is for one that is no cache.
func (c *FileCache[T]) look(shard int) (*fileIndex, error) {
	s := &c.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looked {
		return s.index, nil
	}
	index, reason, err := openIndex(c.path(shard), c.header(shard))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, &CacheError{Path: c.path(shard), Err: err}
	case reason != "":
		c.note(shard, reason)
	case !c.reserve(index.size):
		c.note(shard, "MaxBytes is reached")
	default:
		s.index = index
	}
	s.looked = true
	return s.index, nil
}
