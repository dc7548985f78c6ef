package ranks_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/ranks"
)

// env is an environment of NAME=value words.
func env(words string) ranks.EnvOptions {
	set := map[string]string{}
	for _, word := range strings.Fields(words) {
		name, value, _ := strings.Cut(word, "=")
		set[name] = value
	}
	return ranks.EnvOptions{Lookup: func(name string) (string, bool) { v, ok := set[name]; return v, ok }}
}

const (
	torchrun = "TORCHELASTIC_RUN_ID=none RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 "
	openMPI  = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_NODE_RANK=1 "
	srun     = "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_LOCALID=1 "
	pod      = "KUBERNETES_PORT=tcp://10.0.0.1:443 "
)

// Each launcher's variables, alone and beside what it leaves or finds.
func TestShardFromEnv(t *testing.T) {
	type place = ranks.Place
	for words, want := range map[string]place{
		"":                              {Shard: loader.Shard{Count: 1}, Launcher: "none"},
		"SLURM_JOB_ID=7 SLURM_NTASKS=1": {Shard: loader.Shard{Count: 1}, Launcher: "none"},
		"LEAT_RANK=2 LEAT_WORLD_SIZE=3": {Shard: loader.Shard{Index: 2, Count: 3}, Launcher: "LEAT_RANK"},
		"LEAT_RANK=2 LEAT_WORLD_SIZE=3 " + torchrun + openMPI: {Shard: loader.Shard{Index: 2, Count: 3}, Launcher: "LEAT_RANK"},
		torchrun:        {Shard: loader.Shard{Index: 5, Count: 8}, Local: loader.Shard{Index: 1, Count: 4}, Launcher: "torchrun"},
		pod + torchrun:  {Shard: loader.Shard{Index: 5, Count: 8}, Local: loader.Shard{Index: 1, Count: 4}, Launcher: "torchrun"},
		torchrun + srun: {Shard: loader.Shard{Index: 5, Count: 8}, Local: loader.Shard{Index: 1, Count: 4}, Launcher: "torchrun"},
		torchrun + "PET_NODE_RANK=1 PET_NNODES=2 PET_NPROC_PER_NODE=auto": {Shard: loader.Shard{Index: 5, Count: 8}, Local: loader.Shard{Index: 1, Count: 4}, Launcher: "torchrun"},
		openMPI:        {Shard: loader.Shard{Index: 3, Count: 4}, Local: loader.Shard{Index: 1, Count: 2}, Launcher: "Open MPI"},
		openMPI + srun: {Shard: loader.Shard{Index: 3, Count: 4}, Local: loader.Shard{Index: 1, Count: 2}, Launcher: "Open MPI"},
		openMPI + "SLURM_PROCID=0 SLURM_NTASKS=4":                                        {Shard: loader.Shard{Index: 3, Count: 4}, Local: loader.Shard{Index: 1, Count: 2}, Launcher: "Open MPI"},
		openMPI + "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1":                                {Shard: loader.Shard{Index: 3, Count: 4}, Local: loader.Shard{Index: 1, Count: 2}, Launcher: "Open MPI"},
		openMPI + "PMIX_RANK=3":                                                          {Shard: loader.Shard{Index: 3, Count: 4}, Local: loader.Shard{Index: 1, Count: 2}, Launcher: "Open MPI"},
		"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1":                      {Shard: loader.Shard{Index: 1, Count: 2}, Local: loader.Shard{Count: 1}, Launcher: "PMI"},
		"PMI_RANK=1 PMI_SIZE=2 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=2":                        {Shard: loader.Shard{Index: 1, Count: 2}, Local: loader.Shard{Index: 1, Count: 2}, Launcher: "PMI"},
		"PMIX_RANK=3 " + srun:                                                            {Shard: loader.Shard{Index: 3, Count: 4}, Local: loader.Shard{Index: 1}, Launcher: "SLURM"},
		srun:                                                                             {Shard: loader.Shard{Index: 3, Count: 4}, Local: loader.Shard{Index: 1}, Launcher: "SLURM"},
		"JAX_PROCESS_ID=1 JAX_NUM_PROCESSES=2 JOB_COMPLETION_INDEX=1":                    {Shard: loader.Shard{Index: 1, Count: 2}, Launcher: "JAX"},
		"LWS_WORKER_INDEX=1 LWS_GROUP_SIZE=2 LWS_LEADER_ADDRESS=x":                       {Shard: loader.Shard{Index: 1, Count: 2}, Launcher: "LeaderWorkerSet"},
		"RANK=1 WORLD_SIZE=2":                                                            {Shard: loader.Shard{Index: 1, Count: 2}, Launcher: "RANK"},
		pod + "RANK=1 WORLD_SIZE=2 LOCAL_RANK=0":                                         {Shard: loader.Shard{Index: 1, Count: 2}, Launcher: "RANK"},
		pod + "RANK=1 WORLD_SIZE=8 PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=4":    {Shard: loader.Shard{Index: 1, Count: 2}, Replicas: 4, Launcher: "Kubeflow"},
		pod + "PET_NNODES=2 PET_NODE_RANK=0 PET_NPROC_PER_NODE=1 JOB_COMPLETION_INDEX=0": {Shard: loader.Shard{Index: 0, Count: 2}, Launcher: "Kubeflow"},
		"RANK= WORLD_SIZE=":                                                              {Shard: loader.Shard{Count: 1}, Launcher: "none"},
	} {
		t.Run(words, func(t *testing.T) {
			got, err := ranks.ShardFromEnv(env(words))
			require.NoError(t, err)
			want.Replicas = max(want.Replicas, 1)
			for _, read := range got.Read {
				require.Contains(t, strings.Fields(words), read)
			}
			if got.Launcher != "none" {
				require.NotEmpty(t, got.Read)
			}
			said := got.String()
			require.Contains(t, said, fmt.Sprintf("rank %d of %d", want.Shard.Index, want.Shard.Count))
			require.Contains(t, said, want.Launcher)
			got.Read, got.Notes = nil, nil
			require.Equal(t, want, got)
		})
	}
}

// What was seen and not followed is told.
func TestNotes(t *testing.T) {
	for words, want := range map[string]string{
		openMPI + srun:  "SLURM says the same: SLURM_PROCID=3, SLURM_STEP_NUM_TASKS=4",
		torchrun + srun: "not followed: SLURM_PROCID=3, SLURM_STEP_NUM_TASKS=4, SLURM_LOCALID=1 of SLURM, in which torchrun",
		openMPI + "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1": "a step of SLURM of another size",
		srun + "WORLD_SIZE=4":                             "not followed: ranks: the environment has RANK, WORLD_SIZE=4; want both, or neither",
		"LWS_WORKER_INDEX=1 LWS_GROUP_SIZE=2":             "each group has all of the data",
		"RANK=1 WORLD_SIZE=2":                             "RANK is taken for a process's number",
	} {
		got, err := ranks.ShardFromEnv(env(words))
		require.NoError(t, err)
		require.Contains(t, got.String(), want)
	}
}

// Nothing is guessed.
func TestRefusals(t *testing.T) {
	for words, want := range map[string]string{
		"LEAT_RANK=2":       "LEAT_RANK=2, LEAT_WORLD_SIZE; want the number of processes too",
		"LEAT_WORLD_SIZE=2": "LEAT_RANK, LEAT_WORLD_SIZE=2; want both",
		"TORCHELASTIC_RUN_ID=x WORLD_SIZE=2 LOCAL_RANK=1":    "TORCHELASTIC_RUN_ID=x, RANK; want both, as torchrun sets them, or neither",
		"TORCHELASTIC_RUN_ID=x PET_NODE_RANK=1 PET_NNODES=2": "TORCHELASTIC_RUN_ID=x, RANK; want both",
		"PET_NNODES=2 PET_NPROC_PER_NODE=1":                  "PET_NODE_RANK, PET_NNODES=2; want both",
		"LEAT_RANK=2 LEAT_WORLD_SIZE=2":                      "LEAT_RANK=2, LEAT_WORLD_SIZE=2; want a rank below the number of processes, 2",
		"RANK=-1 WORLD_SIZE=2":                               "RANK=-1; want a whole number",
		"RANK=one WORLD_SIZE=2":                              "RANK=one; want a whole number",
		"RANK=0 WORLD_SIZE=0":                                "WORLD_SIZE=0; want a whole number of 1",
		"RANK=0 WORLD_SIZE=99999999999999999999":             "WORLD_SIZE=99999999999999999999",
		"RANK=0":                                             "RANK=0, WORLD_SIZE; want the number",
		"WORLD_SIZE=4":                                       "RANK, WORLD_SIZE=4; want both",
		"OMPI_COMM_WORLD_RANK=1":                             "OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE; want the number",
		"PMIX_RANK=1":                                        "PMIX_RANK=1, PMIX_SIZE",
		"JOB_COMPLETION_INDEX=1":                             "JOB_COMPLETION_INDEX=1, no count of the Job's completions; want the number of processes too",
		"SLURM_NTASKS=4 SLURM_PROCID=0":                      "SLURM_NTASKS=4, SLURM_STEP_NUM_TASKS; want a process that srun has started",
		openMPI + "SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4":    "OMPI_COMM_WORLD_RANK=3, OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_LOCAL_RANK=1, OMPI_COMM_WORLD_LOCAL_SIZE=2, SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=4; want Open MPI and SLURM to agree",
		srun + "RANK=1 WORLD_SIZE=4":                         "want SLURM and RANK to agree",
		pod + "RANK=1 WORLD_SIZE=8":                          "RANK=1, WORLD_SIZE=8, KUBERNETES_PORT, PET_NODE_RANK, PET_NNODES; want PET_NODE_RANK",
		pod + "RANK=1 WORLD_SIZE=2 PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=auto": "PET_NPROC_PER_NODE=auto; want a number of replicas",
		pod + "PET_NNODES=2 PET_NODE_RANK=1":                                             "PET_NPROC_PER_NODE; want the number of replicas",
		"TORCHELASTIC_RUN_ID=x RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1":      "LOCAL_RANK=1, LOCAL_WORLD_SIZE=1; want a rank below",
	} {
		got, err := ranks.ShardFromEnv(env(words))
		var refused *ranks.EnvError
		require.ErrorAs(t, err, &refused, words)
		require.NotEmpty(t, refused.Variables)
		require.ErrorContains(t, err, want, words)
		require.Zero(t, got)
	}
}

// What a launcher doesn't tell, the options do, and must not contradict.
func TestStatedCounts(t *testing.T) {
	stated := func(words string, count, replicas int) (ranks.Place, error) {
		o := env(words)
		o.Count, o.Replicas = count, replicas
		return ranks.ShardFromEnv(o)
	}
	for _, words := range []string{"JOB_COMPLETION_INDEX=1", "PMIX_RANK=1", "RANK=1", "LEAT_RANK=1"} {
		p, err := stated(words, 3, 0)
		require.NoError(t, err)
		require.Equal(t, loader.Shard{Index: 1, Count: 3}, p.Shard)
		_, err = stated(words, 1, 0)
		require.ErrorContains(t, err, "a rank below the number of processes, 1")
	}
	_, err := stated(srun, 5, 0)
	require.ErrorContains(t, err, "SLURM_STEP_NUM_TASKS=4, SLURM_LOCALID=1; want the 5 processes that EnvOptions.Count states")
	_, err = stated("", 2, 0)
	require.ErrorContains(t, err, "no rank; want one of 2")
	auto := pod + "PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=auto"
	p, err := stated(auto, 0, 8)
	require.NoError(t, err)
	require.Equal(t, 8, p.Replicas)
	_, err = stated(strings.Replace(auto, "auto", "4", 1), 0, 8)
	require.ErrorContains(t, err, "PET_NPROC_PER_NODE=4; want the 8 replicas")
	_, err = stated("", -1, 0)
	require.ErrorAs(t, err, new(*loader.OptionError))
}

// The process's own environment is read unless another is given.
func TestTheProcessesOwnEnvironment(t *testing.T) {
	for name, value := range maps.All(map[string]string{"LEAT_RANK": "1", "LEAT_WORLD_SIZE": "2"}) {
		t.Setenv(name, value)
	}
	p, err := ranks.ShardFromEnv(ranks.EnvOptions{})
	require.NoError(t, err)
	require.Equal(t, loader.Shard{Index: 1, Count: 2}, p.Shard)
	require.Equal(t, "rank 1 of 2, by launcher: LEAT_RANK (LEAT_RANK=1, LEAT_WORLD_SIZE=2)", p.String())
}

func FuzzShardFromEnv(f *testing.F) {
	f.Add(torchrun)
	f.Add(openMPI + srun)
	f.Add(pod + "RANK=1 WORLD_SIZE=8 PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=4")
	f.Fuzz(func(t *testing.T, words string) {
		p, err := ranks.ShardFromEnv(env(words))
		if err != nil {
			require.ErrorAs(t, err, new(*ranks.EnvError))
			return
		}
		require.GreaterOrEqual(t, p.Shard.Index, 0)
		require.Less(t, p.Shard.Index, p.Shard.Count)
		require.GreaterOrEqual(t, p.Replicas, 1)
	})
}
