package pack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/internal/usercode"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/whole"
)

// Format is how a shard of samples is written.
type Format[S any] struct {
	// Name tells the format from others, with all that changes what is written.
	Name string
	// Suffix is the end of a shard's name: .tar.
	Suffix string
	// Write writes a shard. Its error is returned with the number of the sample that was lent
	// last; that of samples is returned as it is.
	Write func(w io.Writer, samples iter.Seq2[S, error]) error
}

// Options tunes Write. The zero value is ready to use.
type Options struct {
	// Shuffle writes the samples in an order of Seed and their number, and not in their own.
	Shuffle bool
	Seed    uint64
	// Workers is how many shards are written at once. 0 means GOMAXPROCS.
	Workers int
	// Fingerprint tells the samples from others, as loader.Fingerprinter does, so that shards
	// of others are not gone on with.
	Fingerprint uint64
}

// Shard is one that was written.
type Shard struct {
	Name    string `json:"name"`
	Samples int    `json:"samples"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
}

// Index is what there is in a folder. It lies there as shards.json.
type Index struct {
	Format      string  `json:"format"`
	Samples     int     `json:"samples"`
	PerShard    int     `json:"samples_per_shard"`
	Shuffle     bool    `json:"shuffle"`
	Seed        uint64  `json:"seed,string"`
	Fingerprint uint64  `json:"fingerprint,string"`
	Shards      []Shard `json:"shards,omitempty"`
}

// Names of the files beside the shards: the first is the plan, an Index without shards.
const (
	planName  = "pack.json"
	indexName = "shards.json"
)

// OtherError is a folder of another plan than the one that was asked for.
type OtherError struct {
	Folder    string
	Got, Want Index
}

// Error implements error.
func (e *OtherError) Error() string {
	return fmt.Sprintf("pack: %s is of %+v, want %+v", e.Folder, e.Got, e.Want)
}

// BusyError is a folder that another process is writing.
type BusyError struct{ Folder string }

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("pack: another process is writing %s", e.Folder)
}

// SampleError is a sample that can't be read or written. Where the function that reads it, or the
// Format, has panicked or ended its goroutine, there is a *loader.PanicError or a
// *loader.GoexitError in it.
type SampleError struct {
	Index int
	Err   error
}

// Error implements error.
func (e *SampleError) Error() string { return fmt.Sprintf("pack: sample %d: %v", e.Index, e.Err) }

// Unwrap returns the cause.
func (e *SampleError) Unwrap() error { return e.Err }

// Write writes the samples 0 to n-1 into a folder, so many in each shard but the last. read
// returns a sample; it is called by several goroutines at once. A shard's samples are in memory
// one at a time, apart from what its Format keeps.
//
// The error is a *loader.OptionError for each mistake, joined, a *SampleError, an *OtherError, a
// *BusyError, or what the operating system says. Behind it shards that are whole are kept for
// the next call.
func Write[S any](ctx context.Context, folder string, n, perShard int,
	read func(ctx context.Context, i int) (S, error), f Format[S], o Options) (*Index, error) {
	plan := Index{Format: f.Name, Samples: n, PerShard: perShard, Shuffle: o.Shuffle, Seed: o.Seed, Fingerprint: o.Fingerprint}
	var errs []error
	for _, v := range []struct {
		name     string
		v, least int
	}{{"n", n, 1}, {"perShard", perShard, 1}, {"Workers", o.Workers, 0}} {
		if v.v < v.least {
			errs = append(errs, &loader.OptionError{Package: "pack", Option: v.name, Value: v.v, Want: fmt.Sprintf("%d or more", v.least)})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if index, err := finished(folder, plan); index != nil || err != nil {
		return index, err
	}
	building := folder + ".packing"
	lock, err := begin(building, plan)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if index, err := finished(folder, plan); index != nil || err != nil { // by the one who had the lock
		return index, err
	}
	order, err := orderOf(n, o)
	if err != nil {
		return nil, err
	}
	plan.Shards = make([]Shard, (n+perShard-1)/perShard)
	var exited atomic.Pointer[SampleError]
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(o.Workers)
	for k := range plan.Shards {
		g.Go(func() (err error) {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			s := shard[S]{path: filepath.Join(building, fmt.Sprintf("shard-%06d%s", k, f.Suffix)), format: f, read: read,
				order: order, from: k * perShard, to: min((k+1)*perShard, n), exited: &exited}
			plan.Shards[k], err = s.write(ctx)
			return err
		})
	}
	err = g.Wait()
	if e := exited.Load(); e != nil { // which the group takes for an end without an error
		err = e
	}
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "windows" { // it renames no folder with an open file in it
		if err := lock.Close(); err != nil {
			return nil, err
		}
	}
	if err := end(building, folder, plan); err != nil {
		return nil, err
	}
	return &plan, nil
}

// orderOf is the order of the samples.
func orderOf(n int, o Options) (*loader.Order, error) {
	fields := []loader.Field{{Name: "sample", Shape: []int{0}, DType: dtype.Uint8}}
	none := loader.FromFunc(n, fields, func(context.Context, int, *loader.Row) error { return nil })
	ld, err := loader.New(none, 1, loader.Options{Shuffle: o.Shuffle, Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	return ld.Order(0), nil
}

// finished is the Index of a folder that is whole, nil if there is none.
func finished(folder string, plan Index) (*Index, error) {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var index Index
	if err := readJSON(filepath.Join(folder, indexName), &index); err != nil {
		return nil, fmt.Errorf("pack: %s is there, and not made by this package: %w", folder, err)
	}
	got := index
	if got.Shards = nil; !equal(got, plan) {
		return nil, &OtherError{Folder: folder, Got: got, Want: plan}
	}
	return &index, nil
}

func equal(a, b Index) bool {
	return a.Format == b.Format && a.Samples == b.Samples && a.PerShard == b.PerShard &&
		a.Shuffle == b.Shuffle && a.Seed == b.Seed && a.Fingerprint == b.Fingerprint
}

// begin makes the folder that is written to, or goes on with one of the same plan. The file that
// it returns is locked until it is closed.
func begin(building string, plan Index) (*os.File, error) {
	if err := os.MkdirAll(building, 0o777); err != nil {
		return nil, err
	}
	path := filepath.Join(building, planName)
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	err = take(lock, building, path, plan)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

func take(lock *os.File, building, path string, plan Index) error {
	free, err := whole.Lock(lock)
	if err == nil && !free {
		return &BusyError{Folder: building}
	}
	// Where there are no locks two processes write the same bytes to files of their own, and the
	// last to finish puts its in place.
	mine, err := lock.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
		return &BusyError{Folder: building} // it has just been finished
	}
	var got Index
	switch err := readJSON(path, &got); {
	case mine.Size() == 0 || err != nil: // killed as it was written: no shard is there yet
		text, err := json.MarshalIndent(plan, "", "\t")
		if err == nil {
			_, err = lock.WriteAt(append(text, '\n'), 0)
		}
		if err == nil {
			err = lock.Sync()
		}
		return err
	case !equal(got, plan):
		return &OtherError{Folder: building, Got: got, Want: plan}
	}
	return nil
}

// end makes the folder whole.
func end(building, folder string, index Index) error {
	if err := placeJSON(filepath.Join(building, indexName), index); err != nil {
		return err
	}
	for _, s := range index.Shards {
		if err := os.Remove(filepath.Join(building, s.Name+sumSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(building, folder)
}

func readJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// placeJSON writes a file that is whole or absent.
func placeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	f, err := whole.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Place()
}

// sumSuffix is the end of the name of what is known of a shard that is whole.
const sumSuffix = ".sum"

// A shard is one to be written.
type shard[S any] struct {
	path     string
	format   Format[S]
	read     func(ctx context.Context, i int) (S, error)
	order    *loader.Order
	from, to int // places in the order
	exited   *atomic.Pointer[SampleError]
}

// write writes the shard, if it is not there whole.
func (s *shard[S]) write(ctx context.Context) (made Shard, err error) {
	var kept Shard
	if readJSON(s.path+sumSuffix, &kept) == nil && kept.Samples == s.to-s.from && kept.Name == filepath.Base(s.path) {
		if sum, size, err := sumOf(s.path); err == nil && sum == kept.SHA256 && size == kept.Bytes {
			return kept, nil
		}
	}
	f, err := whole.Create(s.path)
	if err != nil {
		return Shard{}, err
	}
	whole := false
	defer func() {
		if !whole { // also where the user's code ends the goroutine
			err = errors.Join(err, f.Discard())
		}
	}()
	sum := sha256.New()
	counted := &counter{w: io.MultiWriter(f, sum)}
	if err := s.samples(ctx, counted); err != nil {
		return Shard{}, err
	}
	whole = true
	if err := f.Place(); err != nil {
		return Shard{}, err
	}
	made = Shard{Name: filepath.Base(s.path), Samples: s.to - s.from, Bytes: counted.n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return made, placeJSON(s.path+sumSuffix, made)
}

// samples has the format write them.
func (s *shard[S]) samples(ctx context.Context, w io.Writer) error {
	last := -1
	var failed error
	samples := func(yield func(S, error) bool) {
		for at := s.from; at < s.to; at++ {
			last = s.order.At(int64(at))
			sample, err := s.read(ctx, last)
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			if failed = err; !yield(sample, err) || err != nil {
				return
			}
		}
	}
	err := usercode.Call(func() error { return s.format.Write(w, samples) },
		func(err error) { s.exited.CompareAndSwap(nil, &SampleError{Index: last, Err: err}) })
	if failed != nil {
		err = failed
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &SampleError{Index: last, Err: err}
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func sumOf(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
