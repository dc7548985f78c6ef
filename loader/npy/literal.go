package npy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A header is a literal of Python's: a dictionary of strings, numbers, True, False and
// tuples. literal reads one.
type literal struct {
	text string
	at   int
	deep int
}

// mistake is where and why a text is no literal that a header can have.
type mistake struct {
	at        int
	want, got string
}

func (m *mistake) Error() string { return fmt.Sprintf("at %d: want %s, got %s", m.at, m.want, m.got) }

// deepest is how far lists may be nested: structures in structures are, and are refused later.
const deepest = 16

func (l *literal) space() {
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.at]) >= 0 {
		l.at++
	}
}

// wrong is a mistake at the place reached.
func (l *literal) wrong(want string) error {
	return &mistake{at: l.at, want: want, got: l.token()}
}

// token is what stands at the place, to be shown.
func (l *literal) token() string {
	rest := l.text[min(l.at, len(l.text)):]
	if rest == "" {
		return "the end of the header"
	}
	end := strings.IndexAny(rest, ",})] \n")
	if end <= 0 {
		end = 1
	}
	return fmt.Sprintf("%q", rest[:min(end, 40)])
}

// take passes over a character if it is the next.
func (l *literal) take(c byte) bool {
	l.space()
	if l.at < len(l.text) && l.text[l.at] == c {
		l.at++
		return true
	}
	return false
}

// dictionary reads all of the text as one. Each key is there once.
func (l *literal) dictionary() (map[string]any, map[string]int, error) {
	values, places := map[string]any{}, map[string]int{}
	if !l.take('{') {
		return nil, nil, l.wrong(`a dictionary that begins with "{"`)
	}
	for !l.take('}') {
		l.space()
		at := l.at
		key, err := l.quoted()
		if err != nil {
			return nil, nil, err
		}
		if _, twice := values[key]; twice {
			return nil, nil, &mistake{at: at, want: "each key once", got: fmt.Sprintf("%q again", key)}
		}
		if !l.take(':') {
			return nil, nil, l.wrong(`":"`)
		}
		l.space()
		places[key] = l.at
		if values[key], err = l.value(); err != nil {
			return nil, nil, err
		}
		if !l.take(',') {
			if l.take('}') {
				break
			}
			return nil, nil, l.wrong(`"," or "}"`)
		}
	}
	if l.space(); l.at < len(l.text) {
		return nil, nil, l.wrong("the end of the header")
	}
	return values, places, nil
}

// value reads a string, a bool, an int64, nil for None, or []any for a tuple or a list.
func (l *literal) value() (any, error) {
	l.space()
	if l.at == len(l.text) {
		return nil, l.wrong("a value")
	}
	switch c := l.text[l.at]; {
	case c == '\'' || c == '"':
		return l.quoted()
	case c == '(':
		return l.list(')')
	case c == '[':
		return l.list(']')
	case c == '-' || c >= '0' && c <= '9':
		return l.integer()
	}
	for word, value := range map[string]any{"True": true, "False": false, "None": nil} {
		if strings.HasPrefix(l.text[l.at:], word) {
			l.at += len(word)
			return value, nil
		}
	}
	return l.call()
}

// quoted reads a string. Headers have no escapes in any: names of fields that would need one
// are of structures.
func (l *literal) quoted() (string, error) {
	if l.at == len(l.text) || l.text[l.at] != '\'' && l.text[l.at] != '"' {
		return "", l.wrong("a string")
	}
	n := strings.IndexByte(l.text[l.at+1:], l.text[l.at])
	if n < 0 {
		return "", l.wrong("a string that ends")
	}
	s := l.text[l.at+1 : l.at+1+n]
	l.at += n + 2
	return s, nil
}

// list reads what is between brackets.
func (l *literal) list(end byte) ([]any, error) {
	if l.deep++; l.deep > deepest {
		return nil, l.wrong(fmt.Sprintf("at most %d brackets in one another", deepest))
	}
	defer func() { l.deep-- }()
	l.at++
	values := []any{}
	for !l.take(end) {
		v, err := l.value()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		if !l.take(',') {
			if l.take(end) {
				break
			}
			return nil, l.wrong(fmt.Sprintf(`"," or %q`, string(end)))
		}
	}
	return values, nil
}

// integer reads digits, and the L that Python 2 put behind a long one.
func (l *literal) integer() (int64, error) {
	begin := l.at
	l.at++
	for l.at < len(l.text) && l.text[l.at] >= '0' && l.text[l.at] <= '9' {
		l.at++
	}
	n, err := strconv.ParseInt(l.text[begin:l.at], 10, 64)
	if err != nil {
		l.at = begin
		return 0, l.wrong("an integer of 64 bits")
	}
	if l.at < len(l.text) && l.text[l.at] == 'L' {
		l.at++
	}
	return n, nil
}

// called is np.int64(3), which some versions of NumPy 2 have written in place of 3.
var called = regexp.MustCompile(`^(?:np|numpy)\.u?(?:int(?:8|16|32|64|p|c)?|long|longlong)\((-?[0-9]+)\)`)

func (l *literal) call() (any, error) {
	m := called.FindStringSubmatch(l.text[l.at:])
	if m == nil {
		return nil, l.wrong("a string, an integer, True, False, None or a tuple")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return nil, l.wrong("an integer of 64 bits")
	}
	l.at += len(m[0])
	return n, nil
}
