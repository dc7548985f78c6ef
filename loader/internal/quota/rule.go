package quota

import "fmt"

// Rule says what becomes of a source that has no more to give. Packages compose and stream
// each have a type of their own, since a rule ends an epoch there and a shard here: these
// are its values in both.
type Rule int

// The rules, as both packages describe them.
const (
	UntilFirstEnds Rule = iota
	UntilAllEnded
	Once
)

// Rules are the names of all, for an error.
const Rules = "UntilFirstEnds, UntilAllEnded or Once"

// Valid reports whether it is one of them.
func (r Rule) Valid() bool { return r >= UntilFirstEnds && r <= Once }

// String is the rule's name.
func (r Rule) String() string {
	switch r {
	case UntilFirstEnds:
		return "UntilFirstEnds"
	case UntilAllEnded:
		return "UntilAllEnded"
	case Once:
		return "Once"
	}
	return fmt.Sprintf("Rule(%d)", int(r))
}
