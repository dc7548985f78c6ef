// Package given looks at what packages of formats are given.
package given

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// Files joins a *loader.OptionError for each mistake in the parameter files of a package: that
// it is empty, and each Source that is nil.
func Files(pkg string, files []source.Source) error {
	var wrong []error
	if len(files) == 0 {
		wrong = append(wrong, &loader.OptionError{Package: pkg, Option: "files", Value: "empty", Want: "one or more"})
	}
	for i, f := range files {
		if f == nil {
			wrong = append(wrong, &loader.OptionError{Package: pkg, Option: fmt.Sprintf("files[%d]", i), Value: nil, Want: "a Source"})
		}
	}
	return errors.Join(wrong...)
}
