package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// An entry is a line of the list of survivors.
type entry struct {
	key, reason string
	line        int
}

// survivors reads the list: a key each, and under it, indented, the reason.
func survivors(name string) (map[string]*entry, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list := map[string]*entry{}
	var open []*entry // keys in a row share the reason that follows
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(line, "//"):
		case text == line:
			if len(open) > 0 && open[0].reason != "" {
				open = nil
			}
			if list[text] != nil {
				return nil, fmt.Errorf("%s:%d: the key stands in line %d already", name, n, list[text].line)
			}
			list[text] = &entry{key: text, line: n}
			open = append(open, list[text])
		case len(open) == 0:
			return nil, fmt.Errorf("%s:%d: a reason without a key", name, n)
		default:
			for _, e := range open {
				e.reason = strings.TrimSpace(e.reason + " " + text)
			}
		}
	}
	for _, e := range list {
		if e.reason == "" {
			return nil, fmt.Errorf("%s:%d: no reason is given", name, e.line)
		}
	}
	return list, s.Err()
}
