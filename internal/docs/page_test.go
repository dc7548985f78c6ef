package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// page is a Markdown file.
type page struct {
	name   string // path below the root
	text   string
	blocks []block
}

// block is a fenced block of code.
type block struct {
	line int    // of its fence
	lang string // behind the fence
	mark string // of the comment on the line before, without <!-- and -->
	text string
}

func (p page) stem() string { return strings.TrimSuffix(filepath.Base(p.name), ".md") }

// program reports whether the block is a whole program.
func (b block) program() bool { return b.lang == "go" && strings.HasPrefix(b.text, "package main\n") }

// pages are README.md, the files beside it and those in docs.
func pages(t *testing.T) (all []page) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			require.NoError(t, err)
			all = append(all, parse(filepath.ToSlash(name), read(t, name)))
		}
	}
	return all
}

// read is a file of the repository with Unix line ends.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

var comment = regexp.MustCompile(`^<!-- (.*) -->$`)

func parse(name, text string) page {
	p := page{name: name, text: text}
	mark, open := "", false
	for i, line := range strings.Split(text, "\n") {
		last := len(p.blocks) - 1
		switch {
		case open && line == "```":
			open = false
		case open:
			p.blocks[last].text += line + "\n"
		case strings.HasPrefix(line, "```"):
			open = true
			p.blocks = append(p.blocks, block{line: i + 1, lang: line[3:], mark: mark})
		}
		mark = ""
		if m := comment.FindStringSubmatch(line); m != nil {
			mark = m[1]
		}
	}
	return p
}

func TestPagesAreRead(t *testing.T) {
	p := parse("docs/x.md", "a\n<!-- output -->\n```\n1\n2\n```\nb\n```go\npackage main\n```\n")
	require.Equal(t, []block{
		{line: 3, mark: "output", text: "1\n2\n"},
		{line: 8, lang: "go", text: "package main\n"},
	}, p.blocks)
	require.True(t, p.blocks[1].program())
	require.Equal(t, "x", p.stem())
}
