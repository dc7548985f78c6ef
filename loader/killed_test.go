package loader_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// logs is a stream of the lines of files, each a number: a file is a shard, and a mark the
// offset in it.
type logs []string

func (l logs) Fields() []loader.Field { return []loader.Field{{Name: "n", DType: dtype.Int64}} }
func (l logs) Shards() int            { return len(l) }

func (l logs) Open(_ context.Context, _ loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	f, err := os.Open(l[shard])
	if err != nil {
		return nil, err
	}
	r := &logReader{file: f}
	if mark != nil {
		if r.offset, err = strconv.ParseInt(string(mark), 10, 64); err == nil {
			_, err = f.Seek(r.offset, io.SeekStart)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.lines = bufio.NewReader(f)
	return r, nil
}

type logReader struct {
	file   *os.File
	lines  *bufio.Reader
	offset int64
}

func (r *logReader) Next(context.Context) (loader.Encoder, bool, error) {
	line, err := r.lines.ReadString('\n')
	if err == io.EOF {
		return nil, false, nil
	}
	r.offset += int64(len(line))
	var n line64
	if err == nil {
		_, err = fmt.Sscan(line, &n)
	}
	return n, true, err
}

func (r *logReader) AppendMark(dst []byte) ([]byte, error) {
	return strconv.AppendInt(dst, r.offset, 10), nil
}

func (r *logReader) Close() error { return r.file.Close() }

type line64 int64

func (n line64) Encode(_ context.Context, row *loader.Row) error {
	return loader.Write(row, "n", int64(n))
}

// committed is what a training loop writes with each step, in one file.
type committed struct {
	Numbers []int64
	State   *loader.State
}

func trainLogs(folder string, each func(committed) error) error {
	shards, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil {
		return err
	}
	l, err := loader.NewStream(logs(shards), 7, loader.Options{Epochs: 2})
	if err != nil {
		return err
	}
	at, step, err := lastCommitted(l, folder)
	if err != nil {
		return err
	}
	mem, err := loader.NewHeap(l.Layout().Size(), 3)
	if err != nil {
		return err
	}
	run := l.Start(context.Background(), at, mem)
	for ; ; step++ {
		f, err := run.Next(context.Background())
		switch {
		case errors.Is(err, loader.ErrEpochEnd):
			step--
			continue
		case errors.Is(err, loader.ErrEnd):
			return run.Close()
		case err != nil:
			return errors.Join(err, run.Close())
		}
		state := l.StateAt(f.After)
		c := committed{Numbers: values[int64](l, f, "n"), State: &state}
		mem.Put(f.Slot)
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		name := filepath.Join(folder, fmt.Sprintf("step-%06d", step))
		if err := errors.Join(os.WriteFile(name+".new", text, 0o600), os.Rename(name+".new", name+".json"), each(c)); err != nil {
			return err
		}
	}
}

// lastCommitted is where to go on, and which step that is.
func lastCommitted(l *loader.Loader, folder string) (at loader.Cursor, step int, err error) {
	all, err := filepath.Glob(filepath.Join(folder, "step-*.json"))
	if err != nil || len(all) == 0 {
		return at, 0, err
	}
	text, err := os.ReadFile(all[len(all)-1])
	var c committed
	if err = errors.Join(err, json.Unmarshal(text, &c)); err == nil {
		err = l.Check(*c.State)
	}
	if err != nil {
		return at, 0, err
	}
	return c.State.Cursor(), len(all), nil
}

// A process is killed again and again, wherever it is, and begun again each time: what it
// has committed is the undisturbed run.
func TestAKilledRunGoesOn(t *testing.T) {
	if folder := os.Getenv("LEAT_KILLED_RUN"); folder != "" { // this is the process
		require.NoError(t, trainLogs(folder, func(committed) error {
			_, err := fmt.Println("committed")
			return err
		}))
		return
	}
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("LEAT_KILLS")); err == nil {
		kills = n
	}
	const shards = 3
	whole, killed := t.TempDir(), t.TempDir()
	for _, folder := range []string{whole, killed} {
		for shard := range shards {
			var text []byte
			for n := range 10*kills*(1+shard) + shard {
				text = fmt.Appendf(text, "%d\n", shard*1_000_000+n)
			}
			require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.log", shard)), text, 0o600))
		}
	}
	var want, got []int64
	require.NoError(t, trainLogs(whole, func(c committed) error {
		want = append(want, c.Numbers...)
		return nil
	}))
	random := rand.New(rand.NewPCG(1, 2))
	for range kills {
		killAfter(t, killed, 1+random.IntN(8))
	}
	killAfter(t, killed, 1<<30)
	steps, err := filepath.Glob(filepath.Join(killed, "step-*.json"))
	require.NoError(t, err)
	for _, name := range steps {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		var c committed
		require.NoError(t, json.Unmarshal(text, &c))
		got = append(got, c.Numbers...)
	}
	require.Equal(t, want, got)
}

// killAfter kills a process of this test when it has told of so many commits, which it has
// gone on from by then, unless it ends before.
func killAfter(t *testing.T, folder string, commits int) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestAKilledRunGoesOn$")
	cmd.Env = append(os.Environ(), "LEAT_KILLED_RUN="+folder)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for commits > 0 && lines.Scan() {
		if lines.Text() == "committed" {
			commits--
		}
	}
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
}
