package bench

import "fmt"

// A Target is a figure and what it should be.
type Target struct {
	// Name is the part's name and key=value pairs: "overlap/batch=64 MiB/ratio=0.5".
	Name string `json:"name"`
	// Value is the median of Runs, in Unit.
	Value float64   `json:"value"`
	Runs  []float64 `json:"runs"`
	Unit  string    `json:"unit"`
	// Goal bounds Value, from below if AtLeast, else from above. HasGoal is false
	// for what is only told.
	Goal    float64 `json:"goal"`
	AtLeast bool    `json:"at_least"`
	HasGoal bool    `json:"has_goal"`
	Met     bool    `json:"met"`
	// Detail are the figures behind it.
	Detail string `json:"detail"`
}

// atMost and atLeast set the goal and whether it is met.
func (t Target) atMost(goal float64) Target {
	t.Goal, t.HasGoal, t.Met = goal, true, t.Value <= goal
	return t
}

func (t Target) atLeast(goal float64) Target {
	t.Goal, t.HasGoal, t.AtLeast, t.Met = goal, true, true, t.Value >= goal
	return t
}

// verdict is "pass", "miss" or, without a goal, empty.
func (t Target) verdict() string {
	switch {
	case !t.HasGoal:
		return ""
	case t.Met:
		return "pass"
	}
	return "miss"
}

func (t Target) goal() string {
	switch {
	case !t.HasGoal:
		return ""
	case t.AtLeast:
		return fmt.Sprintf("≥ %.4g", t.Goal)
	}
	return fmt.Sprintf("≤ %.4g", t.Goal)
}
