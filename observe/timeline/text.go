package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Text draws it in so many columns, at least 40, for a terminal: a letter for what each lane
// did most of the time that a column stands for. Behind a lane stands for how much of its
// time it was idle, and why.
func (t *Timeline) Text(columns int) string {
	columns = max(columns, 40)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v\n", t.Title, t.Length)
	names := 0
	for i := range t.Lanes {
		names = max(names, len(t.Lanes[i].Name()))
	}
	for i := 0; i < len(t.Lanes); {
		group, n := t.Lanes[i].Group, 0
		for ; i < len(t.Lanes) && t.Lanes[i].Group == group; i++ {
			if n++; n <= mostLanes {
				l := &t.Lanes[i]
				fmt.Fprintf(&b, "%-*s |%s|%s\n", names, l.Name(), l.row(columns-names-3, t.Length), l.idle(t.Length))
			}
		}
		if n > mostLanes {
			fmt.Fprintf(&b, "%-*s and %d more\n", names, "", n-mostLanes)
		}
	}
	there := t.kinds()
	for i := range styles {
		if st := &styles[i]; there[st.kind] {
			fmt.Fprintf(&b, "  %c %s\n", st.letter, st.name)
		}
	}
	for _, n := range t.Notes {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// row is the lane's letters.
func (l *Lane) row(columns int, length time.Duration) string {
	if columns < 1 || length <= 0 {
		return ""
	}
	row := make([]byte, columns)
	next := 0
	for c := range row {
		from, to := length*time.Duration(c)/time.Duration(columns), length*time.Duration(c+1)/time.Duration(columns)
		row[c] = ' '
		var most time.Duration
		var took [256]time.Duration
		for next < len(l.Spans) && l.Spans[next].To <= from {
			next++
		}
		for i := next; i < len(l.Spans) && l.Spans[i].From < to; i++ {
			s := &l.Spans[i]
			letter := styleOf(s.Kind).letter
			took[letter] += min(s.To, to) - max(s.From, from)
			if took[letter] > most && 2*took[letter] >= to-from {
				most, row[c] = took[letter], letter
			}
		}
	}
	return string(row)
}

// idle says for how much of the time the lane had nothing to do, by reasons.
func (l *Lane) idle(length time.Duration) string {
	sums := map[string]time.Duration{}
	var whole time.Duration
	for i := range l.Spans {
		if s := &l.Spans[i]; s.Kind == Idle {
			sums[s.Why] += s.Took()
			whole += s.Took()
		}
	}
	if whole == 0 || length <= 0 {
		return ""
	}
	share := func(d time.Duration) string { return fmt.Sprintf("%.0f%%", 100*float64(d)/float64(length)) }
	var reasons []string
	for why, d := range sums {
		reasons = append(reasons, fmt.Sprintf("%s %s", share(d), whys[why]))
	}
	slices.Sort(reasons)
	return fmt.Sprintf(" idle %s: %s", share(whole), strings.Join(reasons, ", "))
}
