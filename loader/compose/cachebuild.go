package compose

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/leat-go/leat/loader/internal/whole"
)

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
	built, err := whole.Create(c.path)
	if err != nil {
		return err
	}
	c.file, c.built = built.File, built
	if _, err = built.WriteAt(c.header.encoded, 0); err == nil {
		err = built.Truncate(c.header.size())
	}
	return err
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
		err := f.Sync() // Place does it too, and has nothing to do then while samples wait
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
	c.file = nil
	err := c.built.Place()
	if err == nil {
		c.file, err = os.Open(c.path)
	}
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
	file := c.file
	if c.file = nil; !c.whole {
		return c.built.Discard()
	}
	return file.Close()
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
