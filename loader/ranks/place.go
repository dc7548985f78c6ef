package ranks

import (
	"fmt"
	"strings"

	"github.com/leat-go/leat/loader"
)

// Place is where a process stands among those of its job, as its launcher has told it.
type Place struct {
	// Shard is for loader.Options: which of all processes this one is.
	Shard loader.Shard
	// Local is which of the processes on its machine it is. Count is 0 where the launcher
	// doesn't tell how many there are, and Index is 0 too where it tells neither.
	Local loader.Shard
	// Replicas is how many parts the process shares its rows out to: 1, or what the launcher
	// wants on a machine of which it has started one process only. The process deals with them
	// by loader.Loader.Divide, or starts other processes and tells each its own Shard.
	Replicas int
	// Launcher names what was believed: torchrun, Open MPI, PMI, SLURM, Kubernetes and so on,
	// or "none" of a process that no launcher has started.
	Launcher string
	// Read are the variables that were believed, NAME=value each.
	Read []string
	// Notes are what was seen besides and not followed, and why: a sentence each.
	Notes []string
}

// String is the place for people, in one line and one more for each note. A program logs it
// once at its start, since a rank that reads another's data shows nowhere else.
func (p Place) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d of %d", p.Shard.Index, p.Shard.Count)
	if p.Local.Count > 0 {
		fmt.Fprintf(&b, ", %d of %d on this machine", p.Local.Index, p.Local.Count)
	}
	if p.Replicas > 1 {
		fmt.Fprintf(&b, ", %d replicas in it", p.Replicas)
	}
	fmt.Fprintf(&b, ", by launcher: %s", p.Launcher)
	if len(p.Read) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(p.Read, ", "))
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\n  %s", note)
	}
	return b.String()
}

// EnvError is an environment that does not say, beyond doubt, which rank a process has.
type EnvError struct {
	// Variables are those that are wrong, missing or don't fit each other: NAME=value, or NAME
	// alone of one that is not set.
	Variables []string
	// Want is what should be there, and what helps.
	Want string
}

// Error implements error.
func (e *EnvError) Error() string {
	return fmt.Sprintf("ranks: the environment has %s; want %s", strings.Join(e.Variables, ", "), e.Want)
}
