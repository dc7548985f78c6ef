package checkpoint

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"

	"github.com/leat-go/leat/loader"
)

// Options are the flags of a program that trains.
type Options struct {
	// Path is the file of the State, empty to save nothing.
	Path string
	// Every is the number of steps from one checkpoint to the next.
	Every int
	// Resume goes on from the file, if it is there.
	Resume bool
}

// Define defines the flags.
func (o *Options) Define(f *flag.FlagSet) {
	f.StringVar(&o.Path, "checkpoint", "", "`file` that the model and the place in the data are saved to")
	f.IntVar(&o.Every, "checkpoint-every", 100, "`steps` from one checkpoint to the next")
	f.BoolVar(&o.Resume, "resume", false, "go on from -checkpoint, if it is there")
}

// Validate reports all mistakes.
func (o *Options) Validate() error {
	var errs []error
	if o.Every < 1 {
		errs = append(errs, fmt.Errorf("-checkpoint-every is %d, want 1 or more", o.Every))
	}
	if o.Resume && o.Path == "" {
		errs = append(errs, errors.New("-resume needs -checkpoint"))
	}
	return errors.Join(errs...)
}

// Load is what to go on from; without it the model is nil.
func (o *Options) Load() (s loader.State, model []byte, err error) {
	if !o.Resume {
		return s, nil, nil
	}
	s, model, err = Load(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return loader.State{}, nil, nil
	}
	return s, model, err
}

// Due reports whether there is to be a checkpoint behind so many steps.
func (o *Options) Due(steps int) bool { return o.Path != "" && steps%o.Every == 0 }
