package source

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Bounds of what a pattern may ask for.
const (
	maxPattern   = 1 << 14 // bytes of it
	maxExpanded  = 1 << 20 // names
	maxNameBytes = 1 << 28 // of all names together
)

// PatternError is a pattern that can't be understood, or that nothing matches.
type PatternError struct {
	// Pattern is the whole pattern.
	Pattern string
	// At is the byte of it at which the mistake begins, -1 if it is no single one.
	At int
	// Err is what is wrong. It wraps path.ErrBadPattern where the pattern is, and
	// fs.ErrNotExist where files are missing.
	Err error
}

// Error implements error.
func (e *PatternError) Error() string {
	if e.At < 0 {
		return fmt.Sprintf("source: pattern %q: %v", e.Pattern, e.Err)
	}
	return fmt.Sprintf("source: pattern %q: at byte %d: %v", e.Pattern, e.At, e.Err)
}

// Unwrap returns what is wrong.
func (e *PatternError) Unwrap() error { return e.Err }

// Expand writes out the braces of a pattern, as a shell does:
//
//	{a,b,c}      each of them; groups may stand in groups, and {,x} has an empty one
//	{000..123}   the numbers from the one to the other, either of which may be the larger,
//	             filled up with zeros to the same length if one is written with a zero in
//	             front
//	\{ \, \}     the characters themselves, as is any character behind a backslash
//
// The names come in the order of the pattern, the last group changing fastest, and one
// that comes twice is there twice. A pattern of more than 1,048,576 names, or 256 MiB of
// them, is refused, as is one of more than 16 KiB. The error is a *PatternError.
func Expand(pattern string) ([]string, error) {
	words, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	for i, word := range words {
		words[i] = unescape(word)
	}
	return words, nil
}

// expand is Expand that leaves the backslashes in.
func expand(pattern string) ([]string, error) {
	b := braces{pattern}
	switch {
	case pattern == "":
		return nil, b.wrong(0, "it is empty")
	case len(pattern) > maxPattern:
		return nil, &PatternError{Pattern: pattern[:60] + "...", At: maxPattern,
			Err: fmt.Errorf("%w: it has %d bytes, at most %d are read", path.ErrBadPattern, len(pattern), maxPattern)}
	}
	return b.expand(0, len(pattern))
}

// braces expands one pattern.
type braces struct{ pattern string }

func (b *braces) wrong(at int, format string, args ...any) error {
	return &PatternError{Pattern: b.pattern, At: at, Err: fmt.Errorf("%w: %s", path.ErrBadPattern, fmt.Sprintf(format, args...))}
}

// expand returns all words of pattern[lo:hi].
func (b *braces) expand(lo, hi int) ([]string, error) {
	open := b.next(lo, hi)
	if open == hi {
		return []string{b.pattern[lo:hi]}, nil
	}
	if b.pattern[open] == '}' {
		return nil, b.wrong(open, "a } without its {")
	}
	cuts, err := b.group(open, hi)
	if err != nil {
		return nil, err
	}
	heads, err := b.choices(cuts)
	if err != nil {
		return nil, err
	}
	tails, err := b.expand(cuts[len(cuts)-1]+1, hi)
	if err != nil {
		return nil, err
	}
	if err := b.check(open, len(heads)*len(tails)); err != nil { // each is maxExpanded at most
		return nil, err
	}
	words := make([]string, 0, len(heads)*len(tails))
	for _, head := range heads {
		for _, tail := range tails {
			words = append(words, b.pattern[lo:open]+head+tail)
		}
	}
	return words, nil
}

// next is where in pattern[lo:hi] the first brace is, hi if there is none.
func (b *braces) next(lo, hi int) int {
	for i := lo; i < hi; i++ {
		switch b.pattern[i] {
		case '\\':
			i++
		case '{', '}':
			return i
		}
	}
	return hi
}

// group finds what the group that opens there consists of: the { itself, the commas
// that are its own, and its }.
func (b *braces) group(open, hi int) (cuts []int, err error) {
	depth := 0
	for i := open; i < hi; i++ {
		switch b.pattern[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				cuts = append(cuts, i)
			}
		case ',':
			if depth == 1 {
				cuts = append(cuts, i)
			}
		case '}':
			if depth--; depth == 0 {
				return append(cuts, i), nil
			}
		}
	}
	return nil, b.wrong(open, "a { without its }")
}

// choices returns all words of a group.
func (b *braces) choices(cuts []int) ([]string, error) {
	lo, hi := cuts[0]+1, cuts[1]
	if len(cuts) == 2 {
		first, last, isRange := strings.Cut(b.pattern[lo:hi], "..")
		switch {
		case lo == hi:
			return nil, b.wrong(cuts[0], "{} has nothing to choose from")
		case isRange && b.next(lo, hi) == hi:
			return b.numbers(lo, first, last)
		}
	}
	var words []string
	for i, cut := range cuts[1:] {
		some, err := b.expand(cuts[i]+1, cut)
		if err != nil {
			return nil, err
		}
		if err := b.check(cuts[0], len(words)+len(some)); err != nil {
			return nil, err
		}
		words = append(words, some...)
	}
	return words, nil
}

// numbers returns the words of a range of numbers.
func (b *braces) numbers(at int, first, last string) ([]string, error) {
	from, err1 := strconv.ParseUint(first, 10, 63)
	to, err2 := strconv.ParseUint(last, 10, 63)
	if err1 != nil || err2 != nil {
		return nil, b.wrong(at, "%s..%s is no range: want two numbers of digits only, below 2⁶³", first, last)
	}
	more := max(from, to) - min(from, to)
	if more >= maxExpanded {
		return nil, b.check(at, maxExpanded+1)
	}
	if err := b.check(at, int(more)+1); err != nil {
		return nil, err
	}
	width := 0
	if padded(first) || padded(last) {
		width = max(len(first), len(last))
	}
	words := make([]string, 0, more+1)
	for i := range more + 1 {
		number := from + i
		if to < from {
			number = from - i
		}
		words = append(words, fmt.Sprintf("%0*d", width, number))
	}
	return words, nil
}

// padded reports whether a number has a zero in front.
func padded(digits string) bool { return len(digits) > 1 && digits[0] == '0' }

// check is an error for too many words. None of them is longer than the pattern.
func (b *braces) check(at, words int) error {
	if limit := min(maxExpanded, maxNameBytes/len(b.pattern)); words > limit {
		return b.wrong(at, "it stands for more than %d names", limit)
	}
	return nil
}

// unescape takes away the backslash before each character that has one.
func unescape(word string) string {
	if !strings.Contains(word, `\`) {
		return word
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] == '\\' && i+1 < len(word) {
			i++
		}
		b.WriteByte(word[i])
	}
	return b.String()
}
