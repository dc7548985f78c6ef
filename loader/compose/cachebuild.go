package compose

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// building is the end of the name of a file that is not whole.
const building = ".building"

// abandoned is the age from which a file that is not whole is taken for one whose process
// was killed.
const abandoned = 24 * time.Hour

// open uses the file at the path, or prepares to build it.
func (c *FileCache) open() error {
	f, err := os.Open(c.path)
	switch {
	case err == nil:
		if c.reason, err = c.header.fits(f); err == nil && c.reason == "" {
			c.file, c.whole = f, true
			c.count.Store(int64(c.Len()))
			return nil
		}
		f.Close()
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return &CacheError{Path: c.path, Err: err}
	}
	words := (c.Len() + 63) / 64
	c.settled = make(chan struct{})
	c.taken, c.held = make([]atomic.Uint64, words), make([]atomic.Uint64, words)
	return nil
}

// begin makes the file that is built, with the first sample. It is false if there is to be
// none.
func (c *FileCache) begin() bool {
	c.mu.RLock()
	begun, never := c.file != nil, c.closed || c.failed != nil
	c.mu.RUnlock()
	if begun || never {
		return !never
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.failed != nil {
		return false
	}
	if c.file != nil {
		return true
	}
	if err := c.create(); err != nil {
		c.giveUp(err)
		return false
	}
	return true
}

// create makes the file beside the path. The caller holds mu.
func (c *FileCache) create() error {
	directory, name := filepath.Split(c.path)
	if directory == "" {
		directory = "."
	}
	removeAbandoned(directory, name)
	f, err := os.CreateTemp(directory, name+".*"+building)
	if err != nil {
		return err
	}
	c.file = f
	if _, err = f.WriteAt(c.header.encoded, 0); err == nil {
		err = f.Truncate(c.header.size())
	}
	return err
}

// removeAbandoned removes what killed processes have left. They are in nobody's way, and
// only take room: failures are of no importance.
func removeAbandoned(directory, name string) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name+".") || !strings.HasSuffix(e.Name(), building) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			os.Remove(filepath.Join(directory, e.Name()))
		}
	}
}

// finish puts the file in place, on a goroutine of its own that Close and Build wait for:
// samples go on being read meanwhile.
func (c *FileCache) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.failed != nil || c.finishing {
		return
	}
	c.finishing = true
	f := c.file
	go func() {
		// On the disk before it has its name, so that a machine that stops leaves no
		// whole file without contents.
		err := f.Sync()
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			err = c.place()
		}
		if err != nil {
			c.giveUp(err)
		}
		c.settle()
	}()
}

// place gives the file its name. The caller holds mu.
func (c *FileCache) place() error {
	built := c.file.Name()
	// Some systems rename no file that is open.
	err := c.file.Close()
	if err == nil {
		err = os.Rename(built, c.path)
	}
	if err != nil {
		c.file = nil
		os.Remove(built)
		return err
	}
	c.file, err = os.Open(c.path)
	c.whole = err == nil
	return err
}

// fail gives up, because of an error of the file.
func (c *FileCache) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUp(err)
}

// giveUp removes what was built, and keeps nothing any more. The first error counts. The
// caller holds mu.
func (c *FileCache) giveUp(err error) {
	if c.failed != nil || c.closed && !c.finishing {
		return
	}
	c.failed = &CacheError{Path: c.path, Err: err}
	c.discard()
	c.settle()
}

// settle tells Build and Close that nothing will change any more. The caller holds mu.
func (c *FileCache) settle() {
	select {
	case <-c.settled:
	default:
		close(c.settled)
	}
}

// discard closes the file, and removes it if it is not whole.
func (c *FileCache) discard() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	if !c.whole {
		err = errors.Join(err, os.Remove(c.file.Name()))
	}
	c.file = nil
	return err
}

// gaveUp reports whether nothing is kept any more.
func (c *FileCache) gaveUp() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.closed || c.failed != nil
}

// Close closes the file, and removes it if it is not whole: samples are read of the dataset
// from then on, which stays open. Later calls do nothing.
func (c *FileCache) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	finishing := c.finishing
	c.mu.Unlock()
	if finishing {
		<-c.settled
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled != nil {
		c.settle()
	}
	if err := c.discard(); err != nil {
		return &CacheError{Path: c.path, Err: err}
	}
	return nil
}
