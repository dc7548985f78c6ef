package ranks

import (
	"fmt"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// launcher is one way in which processes are told their rank. The variables are those that
// the launchers' documentation names.
type launcher struct {
	name string
	// inner is one that is started by others, of which it has a process for each machine: what
	// those say is of that.
	inner bool
	// mpi is one that starts its own processes through others.
	mpi bool
	// coarse is one whose numbers are of pods, in which another launcher may count processes.
	coarse bool
	// read is what the variables say, if they are there. What is wrong with them it notes in
	// the environment.
	read func(e *environment) (c claim, there bool)
}

const slurm = "SLURM"

// launchers are those known, in the order in which they are believed.
var launchers = []launcher{
	{name: "LEAT_RANK", inner: true, read: func(e *environment) (claim, bool) {
		return e.pair("LEAT_RANK", "LEAT_WORLD_SIZE")
	}},
	{name: "torchrun", inner: true, read: func(e *environment) (claim, bool) {
		if e.has("TORCHELASTIC_RUN_ID") && !e.has("RANK") {
			e.wrong(append(e.show("TORCHELASTIC_RUN_ID"), "RANK"), "both, as torchrun sets them, or neither")
		}
		if !e.has("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK") {
			return claim{}, false
		}
		c, there := e.pair("RANK", "WORLD_SIZE")
		e.local(&c, "LOCAL_RANK", "LOCAL_WORLD_SIZE")
		return c, there
	}},
	{name: "Open MPI", mpi: true, read: func(e *environment) (claim, bool) {
		c, there := e.pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
		e.local(&c, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
		return c, there
	}},
	{name: "PMI", mpi: true, read: func(e *environment) (claim, bool) {
		c, there := e.pair("PMI_RANK", "PMI_SIZE")
		if !there {
			c, there = e.pair("PMIX_RANK", "PMIX_SIZE")
		}
		e.local(&c, "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
		e.local(&c, "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE")
		return c, there
	}},
	{name: slurm, read: func(e *environment) (claim, bool) {
		// Outside of a step there is one process, which has number 0 of all tasks.
		if !e.has("SLURM_STEP_NUM_TASKS") {
			return claim{}, false
		}
		c, there := e.pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
		e.local(&c, "SLURM_LOCALID", "")
		return c, there
	}},
	{name: "Kubeflow", coarse: true, read: readKubeflow},
	{name: "JAX", coarse: true, read: func(e *environment) (claim, bool) {
		return e.pair("JAX_PROCESS_ID", "JAX_NUM_PROCESSES")
	}},
	{name: "LeaderWorkerSet", coarse: true, read: func(e *environment) (claim, bool) {
		c, there := e.pair("LWS_WORKER_INDEX", "LWS_GROUP_SIZE")
		if there {
			c.notes = append(c.notes, "ranks count within the group; each group has all of the data")
		}
		return c, there
	}},
	{name: "Kubernetes", coarse: true, read: func(e *environment) (claim, bool) {
		c, there := e.rank("JOB_COMPLETION_INDEX")
		c.missing = "no count of the Job's completions"
		return e.counted(c), there
	}},
	{name: "RANK", read: readPlain},
}

// readKubeflow reads the arguments of a torchrun that was not run: the pod has one process.
func readKubeflow(e *environment) (claim, bool) {
	if !e.has("PET_NODE_RANK") && !e.has("PET_NNODES") || e.has("TORCHELASTIC_RUN_ID") {
		return claim{}, false
	}
	c, there := e.pair("PET_NODE_RANK", "PET_NNODES")
	each, ok := e.lookup("PET_NPROC_PER_NODE")
	number, err := strconv.Atoi(each)
	switch {
	case ok && err == nil && number >= 1:
		c.replicas = number
		c.read = append(c.read, "PET_NPROC_PER_NODE="+each)
		if n := e.options.Replicas; n > 0 && n != number {
			e.wrong([]string{"PET_NPROC_PER_NODE=" + each}, fmt.Sprintf("the %d replicas that EnvOptions.Replicas states", n))
		}
	case e.options.Replicas > 0:
		c.replicas = e.options.Replicas
	case ok:
		e.wrong([]string{"PET_NPROC_PER_NODE=" + each}, "a number of replicas on each machine, there or in EnvOptions.Replicas")
	default:
		e.wrong([]string{"PET_NPROC_PER_NODE"}, "the number of replicas on each machine, there or in EnvOptions.Replicas")
	}
	return c, there
}

// readPlain reads what scripts set, unless it is in a pod, where it says nothing of processes.
func readPlain(e *environment) (claim, bool) {
	if e.has("TORCHELASTIC_RUN_ID", "LOCAL_RANK") || !e.has("RANK") && !e.has("WORLD_SIZE") {
		return claim{}, false
	}
	if !e.has("LOCAL_RANK") && !e.has("GROUP_RANK") && e.has("KUBERNETES_PORT") {
		if !e.has("PET_NODE_RANK") {
			e.wrong(append(e.show("RANK"), append(e.show("WORLD_SIZE"), "KUBERNETES_PORT", "PET_NODE_RANK", "PET_NNODES")...),
				"PET_NODE_RANK and PET_NNODES, since in a pod RANK is the pod's number; or LEAT_RANK and LEAT_WORLD_SIZE")
		}
		return claim{}, false
	}
	c, there := e.pair("RANK", "WORLD_SIZE")
	e.local(&c, "LOCAL_RANK", "LOCAL_WORLD_SIZE")
	if there && c.local.Count == 0 {
		c.notes = append(c.notes, "RANK is taken for a process's number; of a launcher that counts machines it would be wrong")
	}
	return c, there
}

// environment reads variables and keeps the first mistake.
type environment struct {
	options EnvOptions
	err     error
}

// lookup is a variable that is set to something.
func (e *environment) lookup(name string) (string, bool) {
	value, ok := e.options.Lookup(name)
	return value, ok && value != ""
}

func (e *environment) has(names ...string) bool {
	for _, name := range names {
		if _, ok := e.lookup(name); !ok {
			return false
		}
	}
	return true
}

// show is a variable for an error: NAME=value, or NAME.
func (e *environment) show(name string) []string {
	if value, ok := e.lookup(name); ok {
		return []string{name + "=" + value}
	}
	return []string{name}
}

func (e *environment) wrong(variables []string, want string) {
	if e.err == nil {
		e.err = &EnvError{Variables: variables, Want: want}
	}
}

// number is a variable's, of least or more.
func (e *environment) number(name string, least int) (n int, ok bool) {
	text, ok := e.lookup(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		e.wrong([]string{name + "=" + text}, fmt.Sprintf("a whole number of %d to %d", least, most))
		return 0, false
	}
	return n, true
}

// rank is a claim of a rank without a count.
func (e *environment) rank(name string) (claim, bool) {
	n, ok := e.number(name, 0)
	if !ok {
		return claim{}, false
	}
	return claim{shard: loader.Shard{Index: n}, read: e.show(name)}, true
}

// counted is c with the count that the options state, if it has none.
func (e *environment) counted(c claim) claim {
	if n := e.options.Count; n > 0 && len(c.read) > 0 && c.shard.Count == 0 {
		c.shard.Count = n
		e.below(c)
	}
	return c
}

func (e *environment) below(c claim) {
	if c.shard.Index >= c.shard.Count {
		e.wrong(c.read, fmt.Sprintf("a rank below the number of processes, %d", c.shard.Count))
	}
}

// pair is a claim of a rank and a count. A count alone is a mistake.
func (e *environment) pair(rank, count string) (claim, bool) {
	c, there := e.rank(rank)
	n, counted := e.number(count, 1)
	switch {
	case !there && counted && e.err == nil && !e.has(rank):
		e.wrong([]string{rank, count + "=" + strconv.Itoa(n)}, "both, or neither")
		return claim{}, false
	case !there:
		return claim{}, false
	case !counted:
		c.missing = count
		return e.counted(c), true
	}
	c.shard.Count, c.read = n, append(c.read, e.show(count)...)
	e.below(c)
	return c, true
}

// local adds the place on the machine, where it is told.
func (e *environment) local(c *claim, rank, count string) {
	n, ok := e.number(rank, 0)
	if !ok || len(c.read) == 0 {
		return
	}
	c.local.Index = n
	c.read = append(c.read, e.show(rank)...)
	if count == "" {
		return
	}
	if size, ok := e.number(count, 1); ok {
		c.local.Count, c.read = size, append(c.read, e.show(count)...)
		if n >= size {
			e.wrong(append(e.show(rank), e.show(count)...), "a rank below the number of processes on the machine")
		}
	}
}
