package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/probe"
)

// A Report is every target that was measured.
type Report struct {
	Date    time.Time     `json:"date"`
	Machine probe.Machine `json:"machine"`
	Device  probe.Device  `json:"device"`
	Targets []Target      `json:"targets"`
	// Skipped says what was not measured and why.
	Skipped []string `json:"skipped,omitempty"`
}

// String is the report as a table.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s; %s/%s, %d CPUs, GOMAXPROCS %d, %s, %s\n\n", r.Device.Name, r.Device.Description, r.Machine.OS,
		r.Machine.Arch, r.Machine.CPUs, r.Machine.GOMAXPROCS, r.Machine.Go, r.Date.Format("2006-01-02 15:04 MST"))
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "%-4s  %-32s %9.4g %-18s %-8s  %s\n", t.verdict(), t.Name, t.Value, t.Unit, t.goal(), t.Detail)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "skip  %s\n", s)
	}
	return b.String()
}
