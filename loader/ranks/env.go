package ranks

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/leat-go/leat/loader"
)

// EnvOptions tunes ShardFromEnv. The zero value is ready to use.
type EnvOptions struct {
	// Count is the number of processes, for launchers that tell each its number only: indexed
	// Jobs of Kubernetes and some forms of PMIx. Where the launcher tells another count that
	// is an error. 0 means that the launcher has to tell.
	Count int
	// Replicas is Place.Replicas where a launcher has started one process for a machine and
	// doesn't say in numbers how many it wants there. 0 means that it has to.
	Replicas int
	// Lookup reads a variable. nil means os.LookupEnv.
	Lookup func(name string) (value string, ok bool)
}

// ShardFromEnv asks the environment which of a job's processes this one is. It follows the first
// of these that there is:
//
//	LEAT_RANK, LEAT_WORLD_SIZE              you
//	RANK, LOCAL_RANK, TORCHELASTIC_RUN_ID   torchrun; sizes in WORLD_SIZE, LOCAL_WORLD_SIZE
//	OMPI_COMM_WORLD_RANK                    mpirun of Open MPI
//	PMI_RANK, PMIX_RANK                     mpiexec of MPICH, Intel MPI and Cray, and PMIx
//	SLURM_PROCID in a step                  srun
//	PET_NODE_RANK, PET_NNODES               Kubeflow's jobs of one process a machine
//	JAX_PROCESS_ID                          Kubeflow's jobs for JAX
//	LWS_WORKER_INDEX                        a LeaderWorkerSet: ranks count within a group
//	JOB_COMPLETION_INDEX                    an indexed Job of Kubernetes; needs Count
//	RANK, WORLD_SIZE                        scripts
//
// A process without any of them is the only one. What else there is must say the same, or be
// what a launcher leaves behind that has started another one: then a note tells. Nothing is
// guessed: a count that is missing, a rank that is not below it, launchers that contradict each
// other, and a batch script of SLURM whose tasks srun has not started are an *EnvError.
// Outside of torchrun, RANK and WORLD_SIZE in a pod of Kubernetes are no process's: there
// operators set them to the pod's number and, some of them, to the number of all processes.
//
// torchrun gives out ranks anew when it restarts processes, and their number may change.
func ShardFromEnv(o EnvOptions) (Place, error) {
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.Count < 0 || o.Replicas < 0 {
		return Place{}, &loader.OptionError{Package: "ranks", Option: "EnvOptions", Value: fmt.Sprintf("Count %d, Replicas %d", o.Count, o.Replicas), Want: "0 or more of both"}
	}
	e := &environment{options: o}
	var found []claim
	var notes []string
	believed := false
	for _, l := range launchers {
		c, there := l.read(e)
		switch {
		case e.err != nil && !believed:
			return Place{}, e.err
		case e.err != nil:
			notes = append(notes, "not followed: "+e.err.Error())
			e.err = nil
		case there:
			c.launcher = l
			found = append(found, c)
			believed = believed || c.shard.Count > 0
		}
	}
	p, err := choose(e, found)
	if err == nil {
		p.Notes = append(p.Notes, notes...)
	}
	return p, err
}

// claim is what a launcher's variables say.
type claim struct {
	launcher     launcher
	shard, local loader.Shard // Count of shard is 0 if it is not told
	replicas     int
	read         []string
	missing      string   // the variable that Count should have been in, or what there is in place of it
	notes        []string // of this launcher alone
}

// choose picks the first claim that says all, and compares it with the others.
func choose(e *environment, found []claim) (Place, error) {
	i := slices.IndexFunc(found, func(c claim) bool { return c.shard.Count > 0 })
	if i < 0 {
		return nobody(e, found)
	}
	c := found[i]
	if n := e.options.Count; n > 0 && n != c.shard.Count {
		return Place{}, &EnvError{Variables: c.read, Want: fmt.Sprintf("the %d processes that EnvOptions.Count states", n)}
	}
	p := Place{Shard: c.shard, Local: c.local, Replicas: max(c.replicas, 1), Launcher: c.launcher.name, Read: c.read, Notes: c.notes}
	for _, other := range append(slices.Clone(found[:i]), found[i+1:]...) {
		seen := strings.Join(other.read, ", ")
		switch {
		case other.shard == c.shard:
			p.Notes = append(p.Notes, fmt.Sprintf("%s says the same: %s", other.launcher.name, seen))
		case c.launcher.inner || other.launcher.coarse || other.shard.Count == 0 && other.shard.Index == c.shard.Index:
			p.Notes = append(p.Notes, fmt.Sprintf("not followed: %s of %s, in which %s may have been started", seen, other.launcher.name, c.launcher.name))
		case c.launcher.mpi && other.launcher.name == slurm && other.shard.Count != c.shard.Count:
			p.Notes = append(p.Notes, fmt.Sprintf("not followed: %s, a step of SLURM of another size, as mpirun starts for itself", seen))
		default:
			return Place{}, &EnvError{
				Variables: append(slices.Clone(c.read), other.read...),
				Want:      fmt.Sprintf("%s and %s to agree; unset what is left over, or set LEAT_RANK and LEAT_WORLD_SIZE", c.launcher.name, other.launcher.name),
			}
		}
	}
	return p, nil
}

// nobody is for a process of which no launcher has said all.
func nobody(e *environment, found []claim) (Place, error) {
	if len(found) > 0 {
		c := found[0]
		return Place{}, &EnvError{Variables: append(slices.Clone(c.read), c.missing), Want: "the number of processes too, there or in EnvOptions.Count"}
	}
	if e.options.Count > 1 {
		return Place{}, &EnvError{Variables: []string{"no rank"}, Want: fmt.Sprintf("one of %d: EnvOptions.Count states that many processes", e.options.Count)}
	}
	// A batch script of SLURM: it runs once, whatever the number of tasks.
	if tasks, ok := e.lookup("SLURM_NTASKS"); ok && tasks != "1" {
		return Place{}, &EnvError{Variables: []string{"SLURM_NTASKS=" + tasks, "SLURM_STEP_NUM_TASKS"}, Want: "a process that srun has started; for one process alone set LEAT_RANK=0 and LEAT_WORLD_SIZE=1"}
	}
	return Place{Shard: loader.Shard{Count: 1}, Replicas: 1, Launcher: "none"}, nil
}
