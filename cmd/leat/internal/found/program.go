package found

import (
	"fmt"
	gofmt "go/format"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// code is how a program opens a Set.
type code struct {
	imports []string // below the module's path
	lines   string   // statements that declare data; a line "check" stands for what returns err
	close   bool     // whether data is to be closed
	data    string   // the expression of the loader.Dataset, if it is not data itself
}

const modulePath = "github.com/leat-go/leat/"

// checks are where a program looks at err.
var checks = regexp.MustCompile(`(?m)^\t*if err != nil \{\n\t*return err\n\t*\}\n`)

// Lines are the statements that load the Set in batches of so many samples, without those that
// look at err.
func (s *Set) Lines(batch int) string {
	body := strings.TrimSuffix(checks.ReplaceAllString(s.function(batch), ""), "\treturn nil\n")
	return strings.TrimPrefix(strings.ReplaceAll(body, "\n\t", "\n"), "\t")
}

// Program is a whole program around Lines, which says what the first batch has.
func (s *Set) Program(batch int) string {
	imports := slices.Concat(s.code.imports, []string{"loader", "prefetch"})
	slices.Sort(imports)
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"log\"\n\n")
	for _, path := range slices.Compact(imports) {
		fmt.Fprintf(&b, "\t%q\n", modulePath+path)
	}
	fmt.Fprintf(&b, ")\n\nfunc main() {\n\tif err := load(context.Background()); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n\nfunc load(ctx context.Context) error {\n%s}\n", s.function(batch))
	return formatted(b.String())
}

// formatted is a program as gofmt writes it.
func formatted(program string) string {
	text, err := gofmt.Source([]byte(program))
	if err != nil { // of our own making: the text shows where
		return program
	}
	return string(text)
}

// function is the body of load, indented by one.
func (s *Set) function(batch int) string {
	var b strings.Builder
	check := func() { b.WriteString("\tif err != nil {\n\t\treturn err\n\t}\n") }
	for line := range strings.SplitSeq(strings.TrimSpace(s.code.lines), "\n") {
		if strings.TrimSpace(line) == "check" {
			check()
			continue
		}
		b.WriteString("\t" + line + "\n")
	}
	if s.code.close {
		b.WriteString("\tdefer data.Close()\n")
	}
	data := s.code.data
	if data == "" {
		data = "data"
	}
	fmt.Fprintf(&b, "\tld, err := loader.New(%s, %d, loader.Options{Shuffle: true, Seed: 1, Epochs: 1})\n", data, batch)
	check()
	b.WriteString("\tpf, err := prefetch.NewHost(ld, prefetch.Options{}) // or prefetch.New, with a device's stream\n")
	check()
	b.WriteString("\tdefer pf.Close()\n\tfor batch, err := range pf.All(ctx) {\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n")
	b.WriteString("\t\tfor _, f := range batch.Fields() {\n\t\t\tfmt.Println(batch.Position(), f.Name, f.DType, f.Shape)\n\t\t}\n\t}\n\treturn nil\n")
	text := formatted("package p\n\nfunc f() {\n" + b.String() + "}\n")
	text = text[strings.Index(text, "{\n")+2:]
	return strings.TrimSuffix(text, "}\n")
}

// files is the expression that has the Set's files, in statements that declare files.
func (s *Set) files() string {
	var paths []string
	for _, f := range s.Files {
		path, _ := source.LocalPath(f)
		paths = append(paths, path)
	}
	if pattern := common(paths); len(paths) > 3 && s.is(pattern) {
		return fmt.Sprintf("files, err := source.Glob(%q)\ncheck\n", pattern)
	}
	for i, path := range paths {
		paths[i] = strconv.Quote(path)
	}
	return fmt.Sprintf("files, err := source.List(%s)\ncheck\n", strings.Join(paths, ", "))
}

// common is a pattern for files of one folder that end alike.
func common(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return filepath.ToSlash(filepath.Join(filepath.Dir(paths[0]), "*"+filepath.Ext(paths[0])))
}

// is reports whether a pattern stands for just the Set's files.
func (s *Set) is(pattern string) bool {
	files, err := source.Glob(pattern)
	return err == nil && slices.EqualFunc(files, s.Files, func(a, b source.Source) bool { return a.Name() == b.Name() })
}

// fieldCode is a field as a literal of Go without its type, for lists of them.
func fieldCode(f loader.Field) string {
	text := fmt.Sprintf("Name: %q, DType: dtype.%s", f.Name, title(f.DType.String()))
	if len(f.Shape) > 0 {
		text += fmt.Sprintf(", Shape: %#v", f.Shape)
	}
	if f.Ragged != nil {
		text += ", Ragged: &loader.Ragged{}"
	}
	return text
}

// title is the name of an element type in Go.
func title(name string) string {
	if name == "bfloat16" {
		return "BFloat16"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// fieldsCode is a list of fields as Go.
func fieldsCode(fields []loader.Field) string {
	var b strings.Builder
	b.WriteString("fields := []loader.Field{\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "\t{%s},\n", fieldCode(f))
	}
	b.WriteString("}\n")
	return b.String()
}
