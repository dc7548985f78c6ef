package mnist

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/leat-go/leat/loader/idx"
	"github.com/leat-go/leat/loader/source"
)

// Files are the paths of the four files, each gzipped or plain.
type Files struct {
	TrainImages, TrainLabels, TestImages, TestLabels string
}

// file is what one of the four is known by.
type file struct {
	name   string // without .gz
	packed string // SHA-256 of the usual .gz
	plain  string // SHA-256 of the contents
}

var known = [4]file{
	{"train-images-idx3-ubyte",
		"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
		"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
	{"train-labels-idx1-ubyte",
		"3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
		"65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
	{"t10k-images-idx3-ubyte",
		"8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
		"0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
	{"t10k-labels-idx1-ubyte",
		"f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
		"ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
}

// ErrDigest: a file has an MNIST file's name and other contents.
var ErrDigest = errors.New("the checksum is not that of MNIST's file")

// MissingError says which files a folder lacks.
type MissingError struct {
	// Dir is the folder looked in.
	Dir string
	// Names are the files that are neither there under that name nor gzipped
	// under that name with ".gz".
	Names []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("mnist: %s lacks %s (each may be plain or end in .gz); %s",
		e.Dir, strings.Join(e.Names, ", "), howToGet)
}

// Is makes errors.Is find fs.ErrNotExist.
func (e *MissingError) Is(target error) bool { return target == fs.ErrNotExist }

const howToGet = "the files are in the folder data of the Go module " + modulePath +
	": run `go mod download " + modulePath + "` in this repository and leave the folder out, or copy them into a folder and name that one with -data"

// Find returns the files in dir, or, if dir is empty, those that the go command
// finds in the module cache, which it fills if need be. All are checked by
// SHA-256. An error is a *MissingError, a *ModuleError, or one that names the file
// (ErrDigest among them).
func Find(ctx context.Context, dir string) (Files, error) {
	if dir == "" {
		var err error
		if dir, err = moduleData(ctx); err != nil {
			return Files{}, err
		}
	}
	var paths [len(known)]string
	missing := MissingError{Dir: dir}
	for i, f := range known {
		path, err := f.find(dir)
		if err != nil {
			return Files{}, err
		}
		if path == "" {
			missing.Names = append(missing.Names, f.name)
		}
		paths[i] = path
	}
	if missing.Names != nil {
		return Files{}, &missing
	}
	var errs []error
	for i, f := range known {
		errs = append(errs, f.verify(ctx, paths[i]))
	}
	return Files{paths[0], paths[1], paths[2], paths[3]}, errors.Join(errs...)
}

// find returns f's path in dir, "" if it isn't there.
func (f file) find(dir string) (string, error) {
	for _, name := range []string{f.name, f.name + ".gz"} {
		path := filepath.Join(dir, name)
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("mnist: %w", err)
		}
	}
	return "", nil
}

// verify compares digests. A .gz that someone packed anew is as good as the usual
// one if its contents are.
func (f file) verify(ctx context.Context, path string) error {
	plain := !strings.HasSuffix(path, ".gz")
	if !plain {
		sum, err := digest(path, false)
		if err != nil {
			return fmt.Errorf("mnist: %w", err)
		}
		if sum == f.packed {
			return nil
		}
	}
	sum, err := digest(path, !plain)
	if err == nil && sum == f.plain {
		return nil
	}
	if _, broken := idx.Open(ctx, source.Path(path)); broken != nil { // it knows where
		return fmt.Errorf("mnist: %w: %w", ErrDigest, broken)
	}
	return fmt.Errorf("mnist: %s: %w: its contents have SHA-256 %s, want %s", path, ErrDigest, sum, f.plain)
}

// digest is the SHA-256 of a file, or of what is packed in it.
func digest(path string, unpack bool) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	var r io.Reader = in
	if unpack {
		if r, err = gzip.NewReader(bufio.NewReader(in)); err != nil {
			return "", err
		}
		// The largest file has 47 MB; more is not ours, and nobody unpacks a bomb.
		r = io.LimitReader(r, 64<<20)
	}
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
