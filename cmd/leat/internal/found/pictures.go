package found

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/leat-go/leat/loader/images"
)

// suffixes are the ends of the names that pictures have.
var suffixes = []string{".jpg", ".jpeg", ".png", ".gif", ".webp"}

// isPictures reports whether a folder has a folder with a picture in it.
func isPictures(path string) bool {
	classes, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	for _, c := range classes {
		if strings.HasPrefix(c.Name(), ".") {
			continue
		}
		files, err := os.ReadDir(filepath.Join(path, c.Name())) // of a file it is an error
		if err != nil {
			continue
		}
		for _, f := range files {
			if (head{name: strings.ToLower(f.Name())}).named(suffixes...) {
				return true
			}
		}
	}
	return false
}

func openPictures(ctx context.Context, s *Set, o Options) error {
	data, err := images.Open(ctx, s.Path, images.Options{Height: o.Side, Width: o.Side})
	if err != nil {
		return err
	}
	plan := data.Plan()
	if plan.Strays > 0 {
		s.note("%d other files are left out, such as %s", plan.Strays, plan.Stray[0])
	}
	s.Names = map[string][]string{"label": data.Classes()}
	s.note("pictures are cut to a square and scaled to %d by %d here", o.Side, o.Side)
	s.code = code{
		imports: []string{"loader/images"},
		lines:   fmt.Sprintf("data, err := images.Open(ctx, %q, images.Options{Height: 224, Width: 224})\ncheck", s.Path),
	}
	return s.opened(data, nil)
}

// isPicture reports whether bytes begin as a picture does.
func isPicture(b []byte) bool {
	for _, magic := range []string{"\xff\xd8\xff", "\x89PNG\r\n\x1a\n", "GIF8"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return true
		}
	}
	return len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP"
}
