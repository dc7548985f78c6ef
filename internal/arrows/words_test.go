package arrows

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The way of a sample through package prefetch, with the package's comment, which lists the
// files of it, is read in twenty minutes at 240 words a minute.
func TestTheCoreOfPrefetchIsReadInTwentyMinutes(t *testing.T) {
	const most = 20 * 240
	doc, err := os.ReadFile("../../prefetch/doc.go")
	require.NoError(t, err)
	words := len(strings.Fields(string(doc)))
	_, list, ok := strings.Cut(string(doc), "# Reading this package")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "\n// # ")
	files := regexp.MustCompile(`(?m)^//\t(\S+\.go) `).FindAllStringSubmatch(list, -1)
	require.Len(t, files, 6)
	for _, file := range files {
		path := filepath.Join("../../prefetch", file[1])
		if strings.HasPrefix(file[1], "internal/") {
			path = filepath.Join("../..", file[1])
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		words += len(strings.Fields(string(text)))
	}
	require.LessOrEqual(t, words, most)
}
