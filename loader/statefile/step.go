package statefile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// SaveStep is Save for one rank of several: the folder, which must be there, has a file for
// each rank and step. All ranks call it behind the same steps, of which each has a number
// that the caller counts, over all epochs: 0 or more, or the error has a *loader.OptionError.
// The ranks may be processes on several machines if they share the folder.
func SaveStep(folder string, step int64, rank loader.Shard, s loader.State) error {
	count := max(rank.Count, 1)
	var wrong error
	switch {
	case step < 0:
		wrong = &loader.OptionError{Package: "statefile", Option: "step", Value: step, Want: "0 or more"}
	case rank.Index < 0 || rank.Index >= count:
		wrong = &loader.OptionError{Package: "statefile", Option: "rank.Index", Value: rank.Index, Want: fmt.Sprintf("0 to %d", count-1)}
	}
	if wrong != nil {
		return &Error{Path: folder, Err: wrong}
	}
	return Save(filepath.Join(folder, part{step, rank.Index, count}.name()), s)
}

// part is one rank's file of a step.
type part struct {
	step        int64
	rank, count int
}

// name sorts by step for people who look at the folder.
func (p part) name() string {
	return fmt.Sprintf("step-%012d-rank-%d-of-%d.json", p.step, p.rank, p.count)
}

var named = regexp.MustCompile(`^step-(\d{12,})-rank-(\d+)-of-(\d+)\.json$`)

// parse reads a name; ok is false for any other file.
func parse(name string) (p part, ok bool) {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return p, false
	}
	p.step, _ = strconv.ParseInt(m[1], 10, 64) // a number too large has another name
	p.rank, _ = strconv.Atoi(m[2])
	p.count, _ = strconv.Atoi(m[3])
	return p, p.name() == name
}

// Newest is the newest step that all ranks have saved in a folder, and the State that any
// number of ranks goes on from there: what loader.MergeStates makes of theirs. Steps that
// some ranks have not saved are passed over, and so are files of other names.
//
// The error is an *Error. It has fs.ErrNotExist where no step is whole, for a run that begins
// at the beginning. A file of that step that holds no State is an error, and so are States
// that do not fit together: an older step is not taken silently. Two numbers of ranks that
// have both saved the step whole are an *AmbiguousError.
func Newest(folder string) (step int64, s loader.State, err error) {
	step, parts, err := newest(folder)
	if err != nil {
		return 0, loader.State{}, &Error{Path: folder, Err: err}
	}
	states := make([]loader.State, len(parts))
	for i, p := range parts {
		if states[i], err = Load(filepath.Join(folder, p.name())); err != nil {
			return 0, loader.State{}, err
		}
	}
	s, err = loader.MergeStates(states...)
	if err != nil {
		return 0, loader.State{}, &Error{Path: filepath.Join(folder, parts[0].name()), Err: err}
	}
	return step, s, nil
}

// AmbiguousError is a step that runs of two numbers of ranks have saved.
type AmbiguousError struct {
	// Step is that step, Ranks the numbers of ranks.
	Step  int64
	Ranks []int
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("step %d was saved by runs of %d and of %d ranks: remove the files of one of them", e.Step, e.Ranks[0], e.Ranks[1])
}

// newest finds the files of the newest step that is whole.
func newest(folder string) (step int64, parts []part, err error) {
	found, err := list(folder)
	if err != nil {
		return 0, nil, err
	}
	type run struct {
		step  int64
		count int
	}
	have := make(map[run][]part)
	step = -1
	for _, p := range found {
		r := run{p.step, p.count}
		have[r] = append(have[r], p)
		if len(have[r]) == p.count { // names are different, so these are all
			step = max(step, p.step)
		}
	}
	var whole []int
	for r, all := range have {
		if r.step == step && len(all) == r.count {
			whole, parts = append(whole, r.count), all
		}
	}
	switch slices.Sort(whole); len(whole) {
	case 0:
		return 0, nil, fmt.Errorf("no step that every rank has saved: %w", fs.ErrNotExist)
	case 1:
		return step, parts, nil
	}
	return 0, nil, &AmbiguousError{Step: step, Ranks: whole}
}

// list is the files of steps in a folder.
func list(folder string) (found []part, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if p, ok := parse(e.Name()); ok && p.rank < p.count {
			found = append(found, p)
		}
	}
	return found, err
}

// Prune removes the files of all steps before one. Only one rank should call it, with a step
// that Newest has returned or one that all ranks are known to have saved.
func Prune(folder string, before int64) error {
	found, err := list(folder)
	if err != nil {
		return &Error{Path: folder, Err: err}
	}
	for _, p := range found {
		path := filepath.Join(folder, p.name())
		if p.step >= before {
			continue
		}
		if err := os.Remove(path); err != nil {
			return &Error{Path: path, Err: err}
		}
	}
	return nil
}
