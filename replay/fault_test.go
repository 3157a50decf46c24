package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/record/integrity"
)

// faultsVariable says how often each fault is tried, in percent of a long run: 100 kills of each
// process, 1000 damaged bytes of each file.
const faultsVariable = "DIAGNOSE_FAULTS"

// keepVariable names a directory for recordings that do not replay.
const keepVariable = "DIAGNOSE_KEEP"

func faults(t testing.TB) int {
	t.Helper()
	text := os.Getenv(faultsVariable)
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("%s: %q", faultsVariable, text)
	}
	return n
}

// faultLimit bounds one run or replay, on a machine under load.
const faultLimit = 3 * time.Minute

// tool builds the command, whose processes can be killed one by one, and the library, for which a
// test may leave no room.
func tool(t *testing.T) string {
	t.Helper()
	if _, err := agent.RecordLibrary(t.Context()); err != nil {
		var unsupported *agent.UnsupportedError
		if errors.As(err, &unsupported) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "diagnose")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "diagnose/cmd/diagnose").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// childOf returns the first child of a process, of any of its threads; 0: there is none.
func childOf(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		if first, _, _ := strings.Cut(string(text), " "); first != "" {
			child, err := strconv.Atoi(first)
			if err == nil {
				return child
			}
		}
	}
	return 0
}

const busyThreads, busyRounds = 4, 400

func busyOutput() string {
	var b strings.Builder
	sum := 0
	for i := range busyThreads {
		fmt.Fprintf(&b, "thread %d done\n", i)
	}
	for i := range busyRounds {
		sum += i + i&0xff
		if i%16 == 3 {
			sum += i
		}
	}
	fmt.Fprintf(&b, "sum %d\n", busyThreads*sum)
	return b.String()
}

// TestKilled kills one process of a recording, at any time: the program, the tracer, or the
// launcher. A program whose tracer or launcher died must not notice it. The recorded part must
// open, and must replay to its end.
func TestKilled(t *testing.T) {
	diagnose := tool(t)
	p, err := recordtest.Read("../internal/testdata/record/faults/busy.c")
	if err != nil {
		t.Fatal(err)
	}
	busy := p.Build(t)
	for depth, victim := range []string{"launcher", "tracer", "program"} {
		t.Run(victim, func(t *testing.T) {
			events, most := uint64(0), faults(t)
			for n := 0; n < most || events == 0 && n < 10*most; n++ { // a busy machine may be slow to record
				events += killOne(t, diagnose, busy, depth)
			}
			if events == 0 {
				t.Error("nothing was recorded before the kills")
			}
		})
	}
}

// killOne kills the launcher (depth 0), the tracer (1) or the program (2), and returns how many
// events a replay of the recorded part did.
func killOne(t *testing.T, diagnose, busy string, depth int) uint64 {
	dir := t.TempDir()
	output := filepath.Join(dir, "output")
	// The shell's redirection is used because with a pipe of this process it would wait for the
	// killed process instead of for the program.
	script := `"$0" record --all -o "$1" -- "$2" ` + fmt.Sprintf("%d %d", busyThreads, busyRounds) + ` >"$3"`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec "+script, diagnose, filepath.Join(dir, "recordings"), busy, output)
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, faultLimit/2
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := [3]int{cmd.Process.Pid}
	ended := make(chan struct{})
	var waited error
	go func() {
		waited = cmd.Wait()
		close(ended)
	}()
	for level := 1; level < 3; {
		if pids[level] = childOf(pids[level-1]); pids[level] != 0 {
			level++
			continue
		}
		select {
		case <-ended:
			return 0 // this process did not run for that long
		case <-time.After(time.Millisecond):
		}
	}
	program, err := unix.PidfdOpen(pids[2], 0)
	if errors.Is(err, unix.ESRCH) {
		<-ended
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(program)
	// Before the library has started, the program depends on the tracer.
	logs := filepath.Join(dir, "recordings", ".*-running", record.LogName)
	for {
		if list, _ := filepath.Glob(logs); len(list) != 0 {
			if s, err := os.Stat(list[0]); err == nil && s.Size() > 64<<10 { // its first extent
				break
			}
		}
		time.Sleep(time.Millisecond)
		if unix.Kill(pids[2], 0) != nil {
			break
		}
	}
	// The library's own start is skipped: of that there is nothing to replay.
	time.Sleep(time.Duration(50+rand.IntN(200)) * time.Millisecond)
	unix.Kill(pids[depth], unix.SIGKILL)
	poll := []unix.PollFd{{Fd: int32(program), Events: unix.POLLIN}}
	for deadline := time.Now().Add(faultLimit); ; {
		n, err := unix.Poll(poll, 1000)
		if n == 1 {
			break
		}
		if (err != nil && err != unix.EINTR) || time.Now().After(deadline) {
			unix.Kill(pids[2], unix.SIGKILL)
			t.Fatalf("the program did not end: %v", err)
		}
	}
	<-ended
	if errors.Is(waited, exec.ErrWaitDelay) {
		t.Error("a process is left that does not end")
	}
	if text, err := os.ReadFile(output); depth < 2 && (err != nil || string(text) != busyOutput()) {
		t.Errorf("the program wrote %q, %v; %s", text, err, stderr.String())
	}
	return replayRest(t, filepath.Join(dir, "recordings"), depth == 0)
}

// replayRest opens and replays the recordings left in a directory.
func replayRest(t *testing.T, dir string, settles bool) uint64 {
	t.Helper()
	rec, err := openRest(dir, settles)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if pid := rec.Log.PID; pid != 0 && pid != uint32(rec.Manifest.PID) {
		t.Errorf("the log of process %d was written by %d", rec.Manifest.PID, pid)
	}
	ctx, cancel := context.WithTimeout(t.Context(), faultLimit)
	defer cancel()
	r, err := replay.Run(ctx, rec, replay.PlainRequest{})
	if err != nil && !hasEvents(rec) {
		return 0 // killed before its first event
	}
	if err != nil {
		t.Errorf("%s: %v", keepRest(t, rec.Dir), err)
		return 0
	}
	checkLeft(t, rec, r)
	return r.Events
}

// checkLeft checks that a replay did all events except for those that may be left.
func checkLeft(t *testing.T, rec *record.Recording, r *replay.Result) {
	t.Helper()
	may := uint64(0)
	for e, err := range rec.Log.Ordered() {
		if err == nil && (e.Flags&eventlog.FlagSoft != 0 || e.Kind == eventlog.KindLimit) {
			may++
		}
	}
	if r.Events+may < r.Total {
		t.Errorf("a replay came to %q after %d of %d events, of which %d may be left", r.End, r.Events, r.Total, may)
	}
}

// keepRest keeps a recording that does not replay in the directory that keepVariable names.
func keepRest(t *testing.T, dir string) string {
	t.Helper()
	to := os.Getenv(keepVariable)
	if to == "" {
		return dir
	}
	to, err := os.MkdirTemp(to, "killed-")
	if err == nil {
		err = os.CopyFS(to, os.DirFS(dir))
	}
	if err != nil {
		t.Log(err)
	}
	return to
}

// openRest opens the one recording of a directory when its tracer, which may be killed or outlive
// its launcher, has finished. A recording that settles gets a name.
func openRest(dir string, settles bool) (*record.Recording, error) {
	var rec *record.Recording
	for deadline := time.Now().Add(faultLimit); ; time.Sleep(10 * time.Millisecond) {
		list, err := os.ReadDir(dir)
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("%d recordings", len(list))
		}
		if err == nil {
			rec, err = record.Open(filepath.Join(dir, list[0].Name()))
		}
		if err == nil && settles && strings.HasSuffix(rec.Dir, "-running") || err == nil && rec.Live() {
			rec.Close()
			err = fmt.Errorf("%s is still written to", rec.Dir)
		}
		if err == nil || time.Now().After(deadline) {
			return rec, err
		}
	}
}

func hasEvents(rec *record.Recording) bool {
	if rec.Log == nil {
		return false
	}
	for _, err := range rec.Log.Ordered() {
		return err == nil
	}
	return false
}

// TestMany records a thousand threads with a million events in one recording.
func TestMany(t *testing.T) {
	const threads, rounds = 1000, 1000
	p, err := recordtest.Read("../internal/testdata/record/faults/many.c")
	if err != nil {
		t.Fatal(err)
	}
	r := recordtest.RecordProgram(t, p.Build(t), []string{fmt.Sprint(threads), fmt.Sprint(rounds)}, "", "SIGABRT")
	checked, err := integrity.Check(t.Context(), r.Dir)
	if err != nil || len(checked.Problems) != 0 {
		t.Fatalf("checked: %+v, %v", checked, err)
	}
	result, err := replay.Run(t.Context(), open(t, r.Dir), replay.PlainRequest{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	if text := recordtest.Differences(result); text != "" {
		t.Error(text)
	}
	if result.End != replay.EndFailure || result.Events != result.Total || result.Total < threads*rounds {
		t.Errorf("%d of %d events, to %s", result.Events, result.Total, result.End)
	}
	t.Logf("%d events; %+v", result.Total, result.Times)
}

// TestPassedWait replays a signal that arrived in a futex call which the replay does not make.
func TestPassedWait(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/record/faults/passed_wait.c")
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, p.Record(t).Dir)
	waits := map[uint32]bool{} // after the thread's last event
	came := false
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		came = came || waits[e.Thread] && e.Kind == eventlog.KindSignal
		waits[e.Thread] = e.Flags&eventlog.FlagSoft != 0 && e.Result == -int64(unix.EINTR)
	}
	if !came {
		t.Fatal("no signal came in a futex call")
	}
	r, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager}, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	if text := recordtest.Differences(r); text != "" {
		t.Error(text)
	}
	if r.Events != r.Total {
		t.Errorf("%d of %d events", r.Events, r.Total)
	}
}

// recordCat starts the recording of a cat, and waits until it has read something.
func recordCat(t *testing.T, dir string, stderr io.Writer) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t), "record", "--all", "-o", dir, "--", "cat")
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// It has read what it wrote back, so its recording has begun.
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd, in
}

// TestStillRecorded requests a replay of a recording that has not ended.
func TestStillRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	cmd, in := recordCat(t, dir, nil)
	running, _ := filepath.Glob(filepath.Join(dir, ".*-running"))
	if len(running) != 1 {
		t.Fatalf("recordings: %q", running)
	}
	rec, err := record.Open(running[0])
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var input *replay.InputError
	if _, err = replay.Run(t.Context(), rec, replay.PlainRequest{}); !errors.As(err, &input) || !strings.Contains(err.Error(), "still being recorded") {
		t.Errorf("while it is recorded: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if replayRest(t, dir, true) == 0 {
		t.Error("no events")
	}
}

// TestDamaged replays recordings with a changed byte or a missing end. Whatever the damage, a
// replay ends: with an error, or as recorded.
func TestDamaged(t *testing.T) {
	r := recordBasic(t, "wait")
	files := []string{record.LogName, record.ManifestName, record.SitesName, record.StartName, record.CoreName, record.DataName}
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(r.Dir, name)
			whole, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) || len(whole) == 0 {
				t.Skip("the recording has none")
			}
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(4, uint64(len(whole))))
			refused := 0
			for i := range 10 * faults(t) {
				damaged := bytes.Clone(whole)
				at := used(random, whole)
				switch i % 3 {
				case 0:
					damaged[at] ^= 1 << random.IntN(8)
				case 1:
					damaged[at] = byte(random.IntN(256))
				case 2:
					damaged = damaged[:at]
				}
				if err := os.WriteFile(path, damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := replayDamaged(t, r.Dir); err != nil {
					refused++
					if errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("byte %#x, damage %d: a replay that does not end: %v", at, i%3, err)
					}
				}
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d refused", refused, 10*faults(t))
		})
	}
	if err := replayDamaged(t, r.Dir); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

// used returns the offset of a byte that is not one of many zeros.
func used(random *rand.Rand, b []byte) int {
	for range 1000 {
		if at := random.IntN(len(b)); b[at] != 0 {
			return at
		}
	}
	return 0
}

func replayDamaged(t *testing.T, dir string) error {
	ctx, cancel := context.WithTimeout(t.Context(), faultLimit)
	defer cancel()
	rec, err := record.Open(dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	_, err = replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Sleeping: 500 * time.Millisecond, Computing: 5 * time.Second}, Verify: true})
	return err
}
