package loader

import (
	"fmt"
	"slices"
)

// excludeRecords makes the loader of a Stream leave out what Options.Exclude says.
func (l *Loader) excludeRecords() error {
	if len(l.options.Exclude) == 0 {
		return nil
	}
	x := newExclusions()
	var wrong mistakes
	for i, e := range l.options.Exclude {
		option := fmt.Sprintf("Exclude[%d]", i)
		const number = "none: a Stream's samples have no index; Origins name them"
		wrong.check(len(e.Samples) == 0, option+".Samples", e.Samples, number)
		wrong.check(len(e.Leaves) == 0, option+".Leaves", e.Leaves, number)
		wrong.check(!slices.Contains(e.Files, ""), option+".Files", "an empty name", "names of files")
		wrong.check(len(e.Steps) == 0 || !l.options.uneven(), option+".Steps", e.Steps, "none, or Options.Steps 1 or more, or Last Drop: "+unevenRanks)
		wrong.check(!slices.Contains(e.Origins, Origin{}), option+".Origins", "the zero Origin", "places that are known")
		for _, s := range e.Steps {
			if err := l.checkPlaces(s); err != nil {
				wrong.check(false, option+".Steps", s, wanted(err))
			}
		}
		x.add(e, l.split.samples)
	}
	if err := wrong.err(); err != nil {
		return err
	}
	l.excluded, l.split.jumped = x, x.steps
	return l.emptied()
}

// record reports whether a Stream's sample is left out by where it comes from.
func (x *exclusions) record(sample Encoder) bool {
	if x == nil || len(x.files) == 0 && len(x.origins) == 0 {
		return false
	}
	at := originOf(sample)
	if at == (Origin{}) {
		return false
	}
	_, file := x.files[at.File]
	_, origin := x.origins[at]
	return file || origin
}
