package found

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tokens"
)

// openTokens opens files of tokens. The type that is not written in a file is a guess, which is
// said.
func openTokens(ctx context.Context, s *Set, o Options) error {
	s.pair()
	data, err := tokens.Open(ctx, s.Files, o.Window, tokens.Options{})
	options := "tokens.Options{}"
	imports := []string{"loader/source", "loader/tokens"}
	if err != nil {
		if data, err = tokens.Open(ctx, s.Files, o.Window, tokens.Options{DType: o.DType}); err != nil {
			return fmt.Errorf("%w (read in windows of %d tokens, those without a type in the file as %s: -window and -dtype say others)", err, o.Window, o.DType)
		}
		options = fmt.Sprintf("tokens.Options{DType: dtype.%s}", title(o.DType.String()))
		imports = append(imports, "dtype")
		s.note("the files don't say which type their tokens have: %s is a guess, and -dtype another one", o.DType)
		if o.DType == dtype.Uint16 {
			s.note("uint32 read as uint16 shows small numbers with zeros between them")
		}
	}
	s.note("%d tokens, in windows of %d and one more", data.Tokens(), o.Window)
	s.code = code{
		imports: imports, close: true,
		lines: s.files() + fmt.Sprintf("data, err := tokens.Open(ctx, files, %d, %s)\ncheck", o.Window, options),
	}
	return s.opened(data, data.Close)
}

// pair adds the other half of a single file of Megatron-LM.
func (s *Set) pair() {
	if len(s.Files) != 1 {
		return
	}
	path, _ := source.LocalPath(s.Files[0])
	ext := filepath.Ext(path)
	other := map[string]string{".bin": ".idx", ".idx": ".bin"}[ext]
	if other == "" {
		return
	}
	if beside := strings.TrimSuffix(path, ext) + other; isFile(beside) {
		s.Files = append(s.Files, source.Path(beside))
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
