package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
	span   = regexp.MustCompile("`([^`\n]+)`")
	link   = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	// A method, a field or an interface's method in the listing of the API.
	member = regexp.MustCompile(`^(?:method \(\*?|type )(\w+)(?:\[.*?\])?(?:\) | struct, | struct, embedded \*?| interface, )(\w+)`)
	name   = regexp.MustCompile(`(?:^|[^.\w])([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
)

// prose is a page's text without its blocks of code.
func (p page) prose() string { return fenced.ReplaceAllString(p.text, "") }

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			target := path.Join(path.Dir(p.name), m[1])
			require.True(t, exists(filepath.Join(root, target)), "%s: %s is not there", p.name, m[1])
		}
	}
}

// variables are what values are called in all pages, and what they are.
var variables = map[string]string{
	"pf": "prefetch.Prefetcher", "batch": "prefetch.Batch", "reader": "prefetch.Reader",
	"ld": "loader.Loader", "row": "loader.Row",
	"dev": "device.Device", "stream": "device.Stream", "compute": "device.Stream",
}

// What a page names is there: `prefetch.Options.Memory` stands in the listing of the API.
func TestNamesAreTheAPIs(t *testing.T) {
	known := map[string]bool{} // "prefetch.Options", "prefetch.Options.Memory"
	packages := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(read(t, "api/leat.txt")), "\n") {
		pkg, feature, found := strings.Cut(line, ": ")
		require.True(t, found, line)
		pkg = path.Base(pkg)
		packages[pkg] = true
		words := strings.FieldsFunc(feature, func(r rune) bool { return strings.ContainsRune(" ([", r) })
		if m := member.FindStringSubmatch(feature); m != nil {
			known[pkg+"."+m[1]+"."+m[2]] = true
		} else {
			known[pkg+"."+words[1]] = true
		}
	}
	for _, p := range pages(t) {
		for _, s := range span.FindAllStringSubmatch(p.prose(), -1) {
			for _, m := range name.FindAllStringSubmatch(s[1], -1) {
				of := variables[m[1]] // which may have the name of a package
				if of == "" && !packages[m[1]] {
					continue
				}
				isMember := of != "" && known[of+"."+m[2]]
				isName := packages[m[1]] && known[m[1]+"."+m[2]] && (m[3] == "" || known[m[1]+"."+m[2]+"."+m[3]])
				require.True(t, isMember || isName, "%s: %s names nothing of the API, and no method of %s", p.name, m[0], of)
			}
		}
	}
}

// Commands are those of this repository: the packages, tests and targets that they name
// are there.
func TestCommandsAreRight(t *testing.T) {
	for _, p := range pages(t) {
		var commands []string
		for _, b := range p.blocks {
			if b.lang == "sh" {
				commands = append(commands, strings.Split(strings.TrimSpace(b.text), "\n")...)
			}
		}
		for _, s := range span.FindAllStringSubmatch(p.prose(), -1) {
			if command.MatchString(s[1]) {
				commands = append(commands, s[1])
			}
		}
		for _, c := range commands {
			checkCommand(t, p.name, c)
		}
	}
}

var (
	command     = regexp.MustCompile(`^([A-Z_]+=\S* )*(go (run|test|get) \S|make \w)`)
	environment = regexp.MustCompile(`^[A-Z_]+=`)
	declared    = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)
)

func checkCommand(t *testing.T, page, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(line)
	for len(words) > 0 && environment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) < 2 {
		return
	}
	switch words[0] + " " + words[1] {
	case "go get":
		require.Regexp(t, `^github\.com/leat-go/leat`, words[2], "%s: %s", page, line)
	case "go run":
		if strings.HasPrefix(words[2], "./") {
			files, err := filepath.Glob(filepath.Join(root, words[2], "*.go"))
			require.NoError(t, err)
			require.NotEmpty(t, files, "%s: %s: there is no such program", page, line)
		}
	case "go test":
		checkTest(t, page, line, words[2:])
	default:
		if words[0] == "make" {
			for _, w := range words[1:] {
				if !environment.MatchString(w) {
					require.Regexp(t, `(?m)^`+regexp.QuoteMeta(w)+`:`, read(t, "Makefile"), "%s: %s: there is no such target", page, line)
				}
			}
		}
	}
}

// checkTest looks for the packages, and for the tests that -run, -bench and -fuzz name.
func checkTest(t *testing.T, page, line string, words []string) {
	t.Helper()
	var folders []string
	var patterns [][2]string
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./"):
			folder := filepath.Join(root, strings.TrimSuffix(w, "..."))
			require.True(t, exists(folder), "%s: %s: there is no %s", page, line, w)
			folders = append(folders, folder)
		case slices.Contains([]string{"-run", "-bench", "-fuzz"}, w):
			patterns = append(patterns, [2]string{w, strings.Trim(words[i+1], "'")})
		}
	}
	for _, pattern := range patterns {
		if pattern[1] == "XXX" || pattern[1] == "^$" || pattern[1] == "." {
			continue
		}
		wanted, err := regexp.Compile(strings.Split(pattern[1], "/")[0])
		require.NoError(t, err)
		found := false
		for _, folder := range folders {
			files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
			require.NoError(t, err)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
					found = found || wanted.MatchString(m[1])
				}
			}
		}
		require.True(t, found, "%s: %s: %s finds nothing", page, line, pattern[0])
	}
}

// docs/errors.md has all errors that users can meet.
func TestEveryErrorIsExplained(t *testing.T) {
	text := read(t, "docs/errors.md")
	types := regexp.MustCompile(`^type (\w*Error)\b|^var (Err\w+) `)
	found := 0
	for _, line := range strings.Split(read(t, "api/leat.txt"), "\n") {
		pkg, feature, _ := strings.Cut(line, ": ")
		if m := types.FindStringSubmatch(feature); m != nil && pkg != "device/driver" { // device has the same ones
			require.Contains(t, text, path.Base(pkg)+"."+m[1]+m[2], "docs/errors.md")
			found++
		}
	}
	require.Greater(t, found, 40)
}

func TestTheReadmeHasEveryPackage(t *testing.T) {
	text := read(t, "README.md")
	for _, line := range strings.Split(strings.TrimSpace(read(t, "api/leat.txt")), "\n") {
		pkg, _, _ := strings.Cut(line, ": ")
		require.Contains(t, text, "[`"+pkg+"`]("+pkg+")")
	}
}

func TestContributorsAreToldOfEveryTarget(t *testing.T) {
	text := read(t, "CONTRIBUTING.md")
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if m[1] != "all" { // lint and test
			require.Contains(t, text, "`make "+m[1]+"`")
		}
	}
}

func TestContributorsAreToldOfEveryInternalPackage(t *testing.T) {
	text := read(t, "CONTRIBUTING.md")
	entries, err := os.ReadDir(filepath.Join(root, "internal"))
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, text, "`internal/"+e.Name()+"`")
	}
}
