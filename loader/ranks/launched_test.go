package ranks_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/ranks"
)

// tell is set in processes that only say which rank they have.
const tell = "LEAT_TEST_TELL_RANK"

func TestMain(m *testing.M) {
	if os.Getenv(tell) == "" {
		os.Exit(m.Run())
	}
	place, err := ranks.ShardFromEnv(ranks.EnvOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(place)
}

// launch starts this program by a launcher, and returns what its processes say. Without the
// launcher the test is skipped; with LEAT_LAUNCHERS=required it fails.
func launch(t *testing.T, args ...string) []string {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		if os.Getenv("LEAT_LAUNCHERS") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	program, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), args[0], append(args[1:], program)...)
	c.Env = append(os.Environ(), tell+"=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	said := regexp.MustCompile(`rank \d of \d.*by launcher: [^(]*`).FindAllString(string(out), -1)
	slices.Sort(said)
	return said
}

// Each process of a real mpirun has a rank of its own.
func TestUnderMpirun(t *testing.T) {
	said := launch(t, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3")
	require.Equal(t, []string{
		"rank 0 of 3, 0 of 3 on this machine, by launcher: Open MPI ",
		"rank 1 of 3, 1 of 3 on this machine, by launcher: Open MPI ",
		"rank 2 of 3, 2 of 3 on this machine, by launcher: Open MPI ",
	}, said)
}

// Each process of a real srun likewise, where a SLURM answers.
func TestUnderSrun(t *testing.T) {
	if err := exec.Command("sinfo").Run(); err != nil && os.Getenv("LEAT_LAUNCHERS") != "required" {
		t.Skip("no SLURM answers:", err)
	}
	said := launch(t, "srun", "-n", "2", "--overcommit")
	require.Equal(t, []string{"rank 0 of 2, by launcher: SLURM ", "rank 1 of 2, by launcher: SLURM "}, said)
}

// Each process of a real torchrun likewise.
func TestUnderTorchrun(t *testing.T) {
	said := launch(t, "torchrun", "--no-python", "--nproc-per-node", "2")
	require.Equal(t, []string{
		"rank 0 of 2, 0 of 2 on this machine, by launcher: torchrun ",
		"rank 1 of 2, 1 of 2 on this machine, by launcher: torchrun ",
	}, said)
}
