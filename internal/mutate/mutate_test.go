package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// modules are written for each test: a package, its tests, and what becomes of each
// mutant.
const source1 = `// Package p has one function for each kind of mutant.
package p // kept

import (
	"errors"
	"sync"
)

type state struct {
	mu   sync.Mutex
	n    int
	last int
	log  []string
}

var errOdd = errors.New("odd")

func (s *state) say(what string) { s.log = append(s.log, what) }

func (s *state) both() {
	s.say("one")
	// Between the two.
	s.say("two")
}

func (s *state) unseen() {
	s.last = 7
}

func (s *state) even(n int) error {
	if n%2 != 0 {
		return errOdd
	}
	return nil
}

func (s *state) add(n int) error {
	if err := s.even(n); err != nil {
		return err
	}
	s.n += n
	return s.even(s.n)
}

func small(n int) bool {
	return n < 10
}

func inside(n int) bool { return n >= 0 && n <= 9 }

func either(a, b bool) (n int) {
	if a || b {
		n++
	}
	return n
}

func (s *state) locked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

func grade(n int) string {
	switch {
	case n > 5:
		return "good"
	default:
		return "bad"
	}
}

func pick(a <-chan int, stop chan struct{}) (n int) {
	select {
	case n = <-a:
	case <-stop:
		n = -1
	}
	return n
}

func count(n int) (sum int) {
loop:
	for i := 0; ; i++ {
		for {
			if i == n {
				break loop
			}
			break
		}
		sum++
	}
	return sum
}

const debug = false

func each(l []int, f func(int)) int {
	done := 0
	for _, v := range l {
		if v < 0 {
			continue
		}
		if debug {
			panic("debug")
		}
		f(v)
		done++
	}
	return done
}

func forever(stop func() bool) int {
	if stop() {
		return 1
	} else {
		for {
			if stop() {
				return 2
			}
		}
	}
}

func generic[T ~int | ~float64](a, b T) T {
	if a > b {
		return a
	}
	return b
}

func grow() (l []byte) {
	for more := true; more; {
		l = append(l, make([]byte, 1<<20)...)
		more = false
	}
	return l
}
`

const tests1 = `package p

import (
	"fmt"
	"testing"
)

func TestBoth(t *testing.T) {
	var s state
	s.both()
	if fmt.Sprint(s.log) != "[one two]" {
		t.Fatal(s.log)
	}
}

func TestUnseen(t *testing.T) { new(state).unseen() }

func TestAdd(t *testing.T) {
	var s state
	if s.add(2) != nil || s.add(1) != errOdd || s.n != 2 {
		t.Fatal(s.n)
	}
}

func TestSmall(t *testing.T) {
	if !small(3) || small(30) {
		t.Fatal()
	}
}

func TestInside(t *testing.T) {
	for _, n := range []int{0, 9} {
		if !inside(n) || inside(n-10) || inside(n+10) {
			t.Fatal(n)
		}
	}
}

func TestEither(t *testing.T) {
	if either(true, false) != 1 || either(false, false) != 0 {
		t.Fatal()
	}
}

func TestLocked(t *testing.T) {
	var s state
	done := make(chan bool)
	for range 2 {
		go func() { s.locked(); done <- true }()
	}
	<-done
	<-done
}

func Example_grade() {
	fmt.Println(grade(6), grade(5))
	// Output: good bad
}

func TestPick(t *testing.T) {
	c := make(chan int, 1)
	c <- 3
	if pick(c, nil) != 3 {
		t.Fatal()
	}
}

func TestLoops(t *testing.T) {
	if count(3) != 3 || each([]int{1, -1, 2}, func(int) {}) != 2 || generic(1, 2) != 2 || generic(2.5, 1) != 2.5 {
		t.Fatal()
	}
	n := 0
	if forever(func() bool { n++; return n > 2 }) != 2 {
		t.Fatal()
	}
}

func TestGrow(t *testing.T) {
	if len(grow()) != 1<<20 {
		t.Fatal()
	}
}
`

// want are lines of "fate key", the package left out.
const want1 = `
caught (*state).say delete: s.log = append(s.log, what)
caught (*state).both delete: s.say("one")
caught (*state).both delete: s.say("two")
caught (*state).both swap: s.say("one") <-> s.say("two")
survived (*state).unseen delete: s.last = 7
caught (*state).even true: n%2 != 0
caught (*state).even false: n%2 != 0
caught (*state).add delete: err := s.even(n); err != nil
caught (*state).add true: err := s.even(n); err != nil
caught (*state).add false: err := s.even(n); err != nil
caught (*state).add delete: s.n += n
caught (*state).add swap: if err := s.even(n); err != nil <-> s.n += n
survived (*state).add delete: return s.even(s.n)
caught small negate: n < 10
survived small bound: n < 10
caught inside drop: n >= 0
caught inside drop: n <= 9
caught inside bound: n >= 0
caught inside bound: n <= 9
caught either true: a || b
caught either drop: a
survived either drop: b
survived (*state).locked delete: s.n++
caught (*state).locked unlock: s.mu
caught grade true: n > 5
caught grade false: n > 5
caught grade bound: n > 5
caught pick nocase: n = <-a
survived pick nocase: <-stop
not reached pick delete: n = -1
hung count false: i == n
caught count true: i == n
hung count delete: break
caught count delete: sum++
caught each true: v < 0
caught each false: v < 0
survived each bound: v < 0
survived each delete: f(v)
caught each delete: done++
caught forever true: stop()
survived forever false: stop()
survived forever true: stop() #2
hung forever false: stop() #2
caught generic true: a > b
caught generic false: a > b
survived generic bound: a > b
caught grow false: more
caught grow delete: l = append(l, make([]byte, 1<<20)...)
overgrown grow delete: more = false
`

func TestMutants(t *testing.T) {
	dir := newModule(t, map[string]string{"p/p.go": source1, "p/p_test.go": tests1})
	o := &options{root: dir, race: true}
	kit := t.TempDir()
	require.NoError(t, build(kit, o, []string{"./p"}))
	k, err := open(kit)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"constant condition": 1, "labelled statement": 1, "order that can't matter": 1}, k.Skipped)

	r := &runner{kit: kit, root: dir, procs: 2, memory: 256 << 20}
	tests, err := r.record(k, 2, time.Minute)
	require.NoError(t, err)
	for _, x := range tests {
		require.Empty(t, x.broken, "%s with every mutant off", x.name)
	}
	var progress bytes.Buffer
	verdicts, err := r.run(k, k.Mutants, tests, 4, &progress)
	require.NoError(t, err)

	got := map[string]string{}
	for _, v := range verdicts {
		fate := map[fate]string{survived: "survived", caught: "caught", hung: "hung", overgrown: "overgrown", notReached: "not reached"}[v.fate]
		key := strings.TrimPrefix(v.Key(), "p ")
		require.NotContains(t, got, key, "keys are unique")
		if v.Kind == unlocked && k.Packages[0].Race == "" {
			fate = "caught" // no C compiler here
		}
		got[key] = fate
	}
	want := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(want1)) {
		fate, key, _ := strings.Cut(strings.TrimSpace(strings.Replace(line, "not reached", "not_reached", 1)), " ")
		want[key] = strings.Replace(fate, "_", " ", 1)
	}
	require.Equal(t, want, got)
}

// A kit is run from its own folder, and its verdict is the command's.
func TestCommand(t *testing.T) {
	dir := newModule(t, map[string]string{
		"p/p.go":      "package p\n\nvar N, seen int\n\nfunc Do() {\n\tN = 1\n\tseen = 2\n}\n",
		"p/other.go":  "package p\n\nfunc other() { N = 3 }\n",
		"p/p_test.go": "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestDo(t *testing.T) {\n\tif Do(); N != 1 {\n\t\tt.Fatal(N)\n\t}\n\tif _, err := os.Stat(\"p.go\"); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n\nfunc TestBroken(t *testing.T) { t.Fatal(\"always\") }\n",
	})
	kit, out := t.TempDir(), filepath.Join(t.TempDir(), "report")
	var said bytes.Buffer
	require.NoError(t, command([]string{"-C", dir, "-race=false", "-build", kit, "./p"}, &said))

	list := filepath.Join(dir, "survivors.txt")
	run := func() (string, error) {
		said.Reset()
		err := command([]string{"-C", dir, "-run", kit, "-survivors", list, "-o", out}, &said)
		report, e := os.ReadFile(out)
		require.NoError(t, e)
		require.Contains(t, said.String(), string(report))
		return string(report), err
	}
	report, err := run()
	require.ErrorContains(t, err, "2 mutants that no test catches are not in the list")
	require.Contains(t, report, "p/p.go:7: mutant 3 survived (1 tests pass it)\np Do delete: seen = 2\n")
	require.Contains(t, report, "p/other.go:3: mutant 1 was not reached (0 tests pass it)\np other delete: N = 3\n")
	require.Contains(t, report, "left out: TestBroken of p fails with every mutant off")

	require.NoError(t, os.WriteFile(list, []byte(`// Mutants that live.

p Do delete: seen = 2
p other delete: N = 3
	nobody looks
p Do delete: N = 1
	so it was thought
p Gone delete: x
	it is no more
other Do delete: N = 1
	of a package that is not mutated here
`), 0o666))
	report, err = run()
	require.NoError(t, err)
	require.Contains(t, report, "listed in line 6, but caught by TestDo:\np Do delete: N = 1\n")
	require.Contains(t, report, "listed, but there is no such mutant:\np Gone delete: x\n")
	require.NotContains(t, report, "other Do")
}

func TestSurvivorsNeedReasons(t *testing.T) {
	for text, want := range map[string]string{
		"\treason\n":               "list:1: a reason without a key",
		"key\n":                    "list:1: no reason is given",
		"key\n\twhy\nkey\n\twhy\n": "list:3: the key stands in line 1 already",
	} {
		name := filepath.Join(t.TempDir(), "list")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
		_, err := survivors(name)
		require.ErrorContains(t, err, want)
	}
	list, err := survivors(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	require.Empty(t, list)
}

// newModule writes a Go module.
func newModule(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
	return dir
}
