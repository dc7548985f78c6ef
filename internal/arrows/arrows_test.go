package arrows

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	// What is looked at, so that the result of another state is not taken from the cache.
	_ "github.com/leat-go/leat/device/auto"
	_ "github.com/leat-go/leat/device/meter"
	_ "github.com/leat-go/leat/loader/cifar"
	_ "github.com/leat-go/leat/loader/compose"
	_ "github.com/leat-go/leat/loader/csv"
	_ "github.com/leat-go/leat/loader/idx"
	_ "github.com/leat-go/leat/loader/jsonl"
	_ "github.com/leat-go/leat/loader/lines"
	_ "github.com/leat-go/leat/loader/npy"
	_ "github.com/leat-go/leat/loader/ranks"
	_ "github.com/leat-go/leat/loader/records"
	_ "github.com/leat-go/leat/loader/safetensors"
	_ "github.com/leat-go/leat/loader/source"
	_ "github.com/leat-go/leat/loader/statefile"
	_ "github.com/leat-go/leat/loader/stream"
	_ "github.com/leat-go/leat/loader/tokens"
	_ "github.com/leat-go/leat/observe"
	_ "github.com/leat-go/leat/observe/journal"
	_ "github.com/leat-go/leat/observe/ui"
	_ "github.com/leat-go/leat/prefetch/capture"
	_ "github.com/leat-go/leat/prefetch/chain"
	_ "github.com/leat-go/leat/prefetch/group"
	_ "github.com/leat-go/leat/serve"
	_ "github.com/leat-go/leat/tensors"
)

const module = "github.com/leat-go/leat/"

// deps are the packages that one of the module is built from.
func deps(t *testing.T, pkg string, flags ...string) []string {
	t.Helper()
	args := append([]string{"list", "-deps"}, flags...)
	out, err := exec.Command("go", append(args, module+pkg)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.Fields(string(out))
}

func TestImportsPointOneWay(t *testing.T) {
	for pkg, never := range map[string][]string{
		"internal/usercode": {"device", "kernels", "pinnedpool", "prefetch"},

		"observe":          {"device/cuda", "device/auto", "observe/ui"},
		"observe/ui":       {"device/cuda", "device/auto"},
		"observe/timeline": {"device", "loader", "prefetch", "observe"},
		"observe/journal":  {"device", "device/driver", "loader", "kernels", "prefetch", "observe"},

		"dtype":          {"device", "device/driver", "loader", "kernels", "prefetch"},
		"loader":         {"device", "device/driver", "kernels", "pinnedpool", "prefetch"},
		"device":         {"device/cpu", "device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"device/driver":  {"device", "loader", "kernels"},
		"device/order":   {"device", "loader", "kernels"},
		"device/busy":    {"device/cpu", "device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"device/meter":   {"device/cpu", "device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"device/cpu":     {"device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"device/cuda":    {"device/cpu", "loader", "kernels", "pinnedpool", "prefetch"},
		"kernels":        {"device/cpu", "device/cuda", "loader", "pinnedpool", "prefetch"},
		"pinnedpool":     {"device/cpu", "device/cuda", "loader", "kernels", "prefetch"},
		"prefetch":       {"observe", "device/cuda", "device/auto", "prefetch/capture", "prefetch/chain", "prefetch/group"},
		"internal/slots": {"device/cpu", "device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"prefetch/chain": {"device/cuda", "device/auto"},
		"prefetch/group": {"device/cuda", "device/auto", "prefetch/chain"},

		"prefetch/capture": {"device/cuda", "device/auto", "prefetch/chain"},
		"serve":            {"device/cuda", "device/auto", "prefetch/chain"},
	} {
		got := deps(t, pkg)
		for _, n := range never {
			require.NotContains(t, got, module+n, "%s imports it", pkg)
		}
	}
}

// Who loads data pays for no server: only programs that import a page link one.
func TestOnlyThePageServes(t *testing.T) {
	for _, pkg := range []string{"examples/hello", "loader/stream", "serve", "observe", "observe/timeline", "prefetch/group", "prefetch/capture"} {
		require.NotContains(t, deps(t, pkg), "net/http", pkg)
	}
	require.Contains(t, deps(t, "observe/ui"), "net/http")
}

const (
	purego   = "github.com/ebitengine/purego"
	memlimit = "github.com/KimMachineGun/automemlimit/memlimit"
	memory   = "github.com/pbnjay/memory"      // automemlimit's
	compress = "github.com/klauspost/compress" // zstd
)

// foreign is what the packages that users import are built from, beside the standard
// library, golang.org/x and this module. All else is in packages that stand in apart,
// so that only those who import them link it.
var foreign = map[string][]string{
	"dtype":              nil,
	"loader":             nil,
	"loader/compose":     nil,
	"loader/idx":         nil,
	"loader/images":      nil,
	"loader/npy":         nil,
	"loader/tokens":      nil,
	"loader/lines":       {compress},
	"loader/csv":         {compress},
	"loader/jsonl":       {compress},
	"loader/safetensors": nil,
	"loader/cifar":       nil,
	"loader/ranks":       nil,
	"loader/records":     nil,
	"loader/source":      nil,
	"loader/statefile":   nil,
	"loader/stream":      nil,
	"loader/pack":        {compress},
	"loader/tar":         {compress},
	"loader/tfrecord":    {compress},
	"device":             nil,
	"device/driver":      nil,
	"device/order":       nil,
	"device/busy":        nil,
	"device/meter":       nil,
	"device/cpu":         nil,
	"device/cuda":        {purego}, // calls C
	"device/auto":        {purego}, // opens device/cuda
	"observe":            {memlimit, memory},
	"observe/journal":    nil,
	"observe/timeline":   nil,
	"observe/ui":         {memlimit, memory},
	"kernels":            nil,
	"pinnedpool":         {memlimit, memory}, // the default budget
	"prefetch":           {memlimit, memory},
	"prefetch/chain":     {memlimit, memory},
	"prefetch/group":     {memlimit, memory},
	"prefetch/capture":   {memlimit, memory},
	"serve":              {memlimit, memory},
	"loader/mds":         {compress},
}

// apart are packages for one purpose, and what they are for.
var apart = map[string]string{
	"tensors":            "gorgonia.org/tensor",
	"device/devicetest":  "tests of drivers",
	"device/cuda/latch":  "tests of drivers",
	"kernels/kerneltest": "tests of kernels",

	"loader/source/sourcetest": "tests of sources",
}

func TestDependencies(t *testing.T) {
	for pkg, may := range foreign {
		for _, dep := range deps(t, pkg, "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}") {
			ours := strings.HasPrefix(dep, module) || strings.HasPrefix(dep, "golang.org/x/")
			require.True(t, ours || slices.ContainsFunc(may, func(m string) bool {
				return dep == m || strings.HasPrefix(dep, m+"/")
			}), "%s is built from %s", pkg, dep)
		}
	}
}

func TestEveryPackageOfUsersIsChecked(t *testing.T) {
	out, err := exec.Command("go", "list", module+"...").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, path := range strings.Fields(string(out)) {
		pkg := strings.TrimPrefix(path, module)
		if path+"/" == module { // documentation only
			continue
		}
		if strings.Contains(path, "/internal/") || strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "examples/") {
			continue
		}
		_, listed := foreign[pkg]
		require.True(t, listed || apart[pkg] != "", "%s stands in no list", pkg)
	}
}

// The example programs and the command show what users can do: they need neither unsafe
// nor the interface below package device.
func TestExamplesUseWhatUsersHave(t *testing.T) {
	const imports = `{{.ImportPath}}: {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`
	out, err := exec.Command("go", "list", "-f", imports, module+"examples/...", module+"cmd/...").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), module+"examples/train: ")
	for _, line := range strings.Split(string(out), "\n") {
		for _, never := range []string{"unsafe", module + "device/driver"} {
			require.NotContains(t, strings.Fields(line), never, line)
		}
	}
}
