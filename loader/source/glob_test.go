package source_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/source/sourcetest"
)

func TestExpand(t *testing.T) {
	for pattern, want := range map[string]string{
		"plain":        "plain",
		"a,b":          "a,b",
		"{a,b}":        "a b",
		"x{a,b}y":      "xay xby",
		"{a}":          "a",
		"{a,}":         "a ",
		"{,}":          " ",
		"{a,b}{1,2}":   "a1 a2 b1 b2",
		"{a,{b,c}d,e}": "a bd cd e",
		"{{{a,b}}}":    "a b",
		"{1..3}":       "1 2 3",
		"{3..1}":       "3 2 1",
		"{7..7}":       "7",
		"{8..11}":      "8 9 10 11",
		"{08..11}":     "08 09 10 11",
		"{0..1}":       "0 1",
		"{00..1}":      "00 01",
		"{1..001}":     "001",
		"{{1..2},x}":   "1 2 x",
		"{1..2,3..4}":  "1..2 3..4",
		`\{a,b\}`:      "{a,b}",
		`{a\,b,c}`:     "a,b c",
		`{a\}b,c}`:     "a}b c",
		`\*\\`:         `*\`,
		`\`:            `\`,
		"é{ö,ü}":       "éö éü",
		"[{,}]":        "[] []",
		"{a..b,}":      "a..b ",
		"{9223372036854775806..9223372036854775807}": "9223372036854775806 9223372036854775807",
	} {
		got, err := source.Expand(pattern)
		require.NoError(t, err, pattern)
		require.Equal(t, want, strings.Join(got, " "), pattern)
	}
	got, err := source.Expand("{08..101}")
	require.NoError(t, err)
	require.Len(t, got, 94)
	require.Equal(t, []string{"008", "101"}, []string{got[0], got[93]})
}

func TestPatternsThatAreNone(t *testing.T) {
	for pattern, test := range map[string]struct {
		at   int
		text string
	}{
		"":                                {0, "it is empty"},
		"a{b":                             {1, "a { without its }"},
		"a}b":                             {1, "a } without its {"},
		"{a,b}}":                          {5, "a } without its {"},
		"{a,{b,c}":                        {0, "a { without its }"},
		`{a\}`:                            {0, "a { without its }"},
		"x{}":                             {1, "{} has nothing to choose from"},
		"{a..c}":                          {1, "a..c is no range"},
		"{1..}":                           {1, "1.. is no range"},
		"{-1..2}":                         {1, "-1..2 is no range"},
		"{+1..2}":                         {1, "+1..2 is no range"},
		"{1..10..2}":                      {1, "1..10..2 is no range"},
		"{1..1000000000}":                 {1, "it stands for more than 1048576 names"},
		"{0..9223372036854775807}":        {1, "it stands for more than 1048576 names"},
		"{0..18446744073709551616}":       {1, "is no range"},
		"{1..1025}{1..1024}":              {0, "it stands for more than 1048576 names"},
		"a" + strings.Repeat("{a,b}", 21): {1, "it stands for more than"},
		strings.Repeat("x", 1<<14+1):      {1 << 14, "it has 16385 bytes"},
		strings.Repeat("{", 1<<14):        {0, "a { without its }"},
		"{1..99999}" + strings.Repeat("y", 16000): {1, "more than 16766 names"},
	} {
		_, err := source.Expand(pattern)
		var told *source.PatternError
		require.ErrorAs(t, err, &told, pattern)
		require.ErrorIs(t, err, path.ErrBadPattern)
		require.Equal(t, test.at, told.At, pattern)
		require.ErrorContains(t, err, test.text)
		_, err = source.Glob(pattern)
		require.ErrorIs(t, err, path.ErrBadPattern)
	}
}

// files are looked at as they are in memory and on disk.
var files = []string{
	"train-000.bin", "train-001.bin", "train-002.bin", "train-010.bin", "val.bin", "val.txt", "Z.bin", "é.bin", "{x}.bin", "a*b.bin",
	".hidden.bin", ".git/x.bin",
	"cats/1.jpg", "cats/2.jpg", "cats/.DS_Store", "dogs/1.jpg", "dogs/deep/3.jpg", "dogs/deep/deeper/4.jpg", "empty/x/y/z",
}

func TestGlobs(t *testing.T) {
	mapped, dir := fstest.MapFS{}, t.TempDir()
	for _, name := range files {
		mapped[name] = &fstest.MapFile{Data: []byte(name)}
		require.NoError(t, os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	for pattern, want := range map[string]string{
		"val.bin":                 "val.bin",
		"./val.bin":               "val.bin",
		"cats//1.jpg":             "cats/1.jpg",
		"*.bin":                   "Z.bin a*b.bin train-000.bin train-001.bin train-002.bin train-010.bin val.bin {x}.bin é.bin",
		"train-*":                 "train-000.bin train-001.bin train-002.bin train-010.bin",
		"train-{000..002}.bin":    "train-000.bin train-001.bin train-002.bin",
		"train-{002..000}.bin":    "train-000.bin train-001.bin train-002.bin",
		"{val,train-*}.{bin,txt}": "!train-*.txt",
		"val.{txt,bin,*}":         "val.bin val.txt",
		"{val.bin,val.bin}":       "val.bin",
		"{*.txt,*l.txt,val.txt}":  "val.txt",
		"train-{000..003}.bin":    "!train-003.bin",
		"nothing":                 "!no file matches",
		"nothing*":                "!no file matches",
		"*/":                      "!no file matches",
		"cats":                    "!no file matches",
		"cats/":                   "!no file matches",
		"val.bin/x":               "!no file matches",
		"val.bin/*":               "!no file matches",
		"val.bin/**":              "!no file matches",
		"*/1.jpg":                 "cats/1.jpg dogs/1.jpg",
		"{cats,dogs}/*":           "cats/1.jpg cats/2.jpg dogs/1.jpg",
		"cats/.*":                 "cats/.DS_Store",
		"[!-~].*":                 "Z.bin",
		"[^a-zA-Z]*.bin":          "{x}.bin é.bin",
		"?.bin":                   "Z.bin é.bin",
		".hidden.bin":             ".hidden.bin",
		".*/x.bin":                ".git/x.bin",
		`\{x\}.bin`:               "{x}.bin",
		`a\*b.bin`:                "a*b.bin",
		`a[*]b.bin`:               "a*b.bin",
		`\v\al.bin`:               "val.bin",
		"**/*.jpg":                "cats/1.jpg cats/2.jpg dogs/1.jpg dogs/deep/3.jpg dogs/deep/deeper/4.jpg",
		"dogs/**":                 "dogs/1.jpg dogs/deep/3.jpg dogs/deep/deeper/4.jpg",
		"dogs/**/**/*.jpg":        "dogs/1.jpg dogs/deep/3.jpg dogs/deep/deeper/4.jpg",
		"**/deep/**/*.jpg":        "dogs/deep/3.jpg dogs/deep/deeper/4.jpg",
		"**/{3,4}.jpg":            "dogs/deep/3.jpg dogs/deep/deeper/4.jpg",
		"**/z":                    "empty/x/y/z",
		"*[":                      "!syntax error in pattern",
		"{a,b[}":                  "!syntax error in pattern",
		"/":                       "!no file matches",
		".":                       "!no file matches",
	} {
		for where, glob := range map[string]func() ([]source.Source, error){
			"MapFS": func() ([]source.Source, error) { return source.GlobFS(mapped, pattern) },
			"DirFS": func() ([]source.Source, error) { return source.GlobFS(os.DirFS(dir), pattern) },
			"disk":  func() ([]source.Source, error) { return source.Glob(dir + "/" + pattern) },
		} {
			t.Run(fmt.Sprintf("%s/%q", where, pattern), func(t *testing.T) {
				if where != "disk" && pattern == "/" {
					return // no name of theirs
				}
				got, err := glob()
				if text, fails := strings.CutPrefix(want, "!"); fails {
					var told *source.PatternError
					require.ErrorAs(t, err, &told)
					require.ErrorContains(t, err, text)
					require.Contains(t, told.Pattern, pattern)
					require.Equal(t, strings.Contains(text, "syntax"), !isMissing(err))
					require.Nil(t, got)
					return
				}
				require.NoError(t, err)
				list := names(got)
				require.True(t, slices.IsSorted(list))
				for i, s := range got {
					f, err := s.Open(t.Context())
					require.NoError(t, err)
					require.NoError(t, f.Close())
					list[i] = strings.TrimPrefix(filepath.ToSlash(list[i]), filepath.ToSlash(dir)+"/")
				}
				require.Equal(t, want, strings.Join(list, " "))
			})
		}
	}
}

func isMissing(err error) bool {
	_, bad := err.(*source.PatternError)
	return bad && strings.Contains(err.Error(), fs.ErrNotExist.Error())
}

func TestMissingShardsAreNamed(t *testing.T) {
	_, err := source.GlobFS(fstest.MapFS{"s-1": {}}, "s-{0..9}")
	require.EqualError(t, err, `source: pattern "s-{0..9}": no file matches 9 of its 10 names, s-0 s-2 s-3 s-4 s-5 and others: file does not exist`)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = source.GlobFS(nil, "x")
	require.ErrorContains(t, err, "a nil fs.FS")
	_, err = source.GlobFS(unreadable{}, "x/*")
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = source.GlobFS(unreadable{}, "x/y")
	require.ErrorIs(t, err, fs.ErrPermission)
}

// unreadable is folders that can't be read.
type unreadable struct{}

func (unreadable) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestGlobsFollowLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) { require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600)) }
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	write("real/a")
	link("real/a", "file")
	link("real", "folder")
	link("nowhere", "dangling")
	link(".", "real/round")
	for pattern, want := range map[string]string{
		"*":      "dangling file",
		"*/a":    "folder/a real/a",
		"**":     "dangling file real/a",
		"**/a":   "real/a",
		"file":   "file",
		"fil[e]": "file",
	} {
		got, err := source.GlobFS(os.DirFS(dir), pattern)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(names(got), " "), pattern)
	}
	got, err := source.Glob(filepath.Join(dir, "dangl*"))
	require.NoError(t, err)
	_, err = got[0].Open(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Below an os.Root neither names nor links lead out of the folder.
func TestGlobsBelowARoot(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "inside"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600))
	root, err := os.OpenRoot(filepath.Join(dir, "inside"))
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, root.WriteFile("a", []byte("mine"), 0o600))
	for _, pattern := range []string{"../secret", "../*", "{a,../secret}", "/*"} {
		_, err = source.GlobFS(root.FS(), pattern)
		require.Error(t, err, pattern)
	}
	if err := os.Symlink("../secret", filepath.Join(dir, "inside", "link")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	_, err = source.GlobFS(root.FS(), "*")
	require.ErrorContains(t, err, "link: path escapes")
	got, err := source.GlobFS(root.FS(), "[a]")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names(got))
	sourcetest.Run(t, got[0], []byte("mine"))
}

func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"", "{a,b}", "{00..11}", "{1..999999999}", `\{`, "{{{", "}", "{a,{b,c}}/**/x", "[a-", "**/**/*", "/./x//", `{\`} {
		f.Add(pattern)
	}
	tree := fstest.MapFS{}
	for _, name := range files {
		tree[name] = &fstest.MapFile{}
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > 60 {
			return // what is asked for grows exponentially, up to the limits that TestPatternsThatAreNone has
		}
		words, err := source.Expand(pattern)
		if err != nil {
			require.ErrorIs(t, err, path.ErrBadPattern)
			_, err = source.GlobFS(tree, pattern)
			require.ErrorIs(t, err, path.ErrBadPattern)
			return
		}
		require.NotEmpty(t, words)
		require.LessOrEqual(t, len(words), 1<<20)
		for _, word := range words {
			require.LessOrEqual(t, len(word), len(pattern))
		}
		if len(words) > 1000 {
			return
		}
		found, err := source.GlobFS(tree, pattern)
		list := names(found)
		require.True(t, slices.IsSorted(list))
		require.Equal(t, len(list), len(slices.Compact(slices.Clone(list))))
		require.Equal(t, err == nil, len(list) > 0)
		for _, name := range list {
			require.Contains(t, files, name)
		}
	})
}
