package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"diagnose/internal/crashtest"
)

var built struct {
	once sync.Once
	path string
	err  error
	said []byte
}

// tool is the path of the command, which is built once.
func tool(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		var dir string
		if dir, built.err = os.MkdirTemp("", "cases-"); built.err != nil {
			return
		}
		built.path = filepath.Join(dir, "diagnose")
		built.said, built.err = exec.Command("go", "build", "-o", built.path, "diagnose/cmd/diagnose").CombinedOutput()
	})
	if built.err != nil {
		t.Fatalf("go build: %v\n%s", built.err, built.said)
	}
	return built.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(code)
}

// trial is a variant of an entry, built in a directory of its own.
type trial struct {
	*entry
	t        *testing.T
	dir, exe string
	flags    []string
}

// ended is how a command ended.
type ended struct {
	stdout, stderr string
	status         int
	timedOut       bool
}

// longest bounds a command: no way waits for what never comes.
const longest = 4 * time.Minute

// run runs the tool, or another program, in the trial's directory.
func (r *trial) run(name string, args ...string) ended {
	r.t.Helper()
	return r.runUntil(longest, nil, name, args...)
}

// runUntil ends the command by a signal, if one is given, when the time is over.
func (r *trial) runUntil(limit time.Duration, signal os.Signal, name string, args ...string) ended {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir
	cmd.WaitDelay = 30 * time.Second
	if signal != nil {
		cmd.Cancel = func() error { return cmd.Process.Signal(signal) }
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if cmd.ProcessState == nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return ended{out.String(), said.String(), cmd.ProcessState.ExitCode(), ctx.Err() != nil}
}

// try runs one variant of an entry, and judges what the tool says.
func (e *entry) try(t *testing.T, flags []string) judgement {
	t.Helper()
	if e.Way != byCore && e.Way != byAgent && e.Way != byRecord && e.Way != bySecrets {
		crashtest.TracesAccesses(t)
	}
	r := &trial{entry: e, t: t, dir: t.TempDir(), flags: flags}
	t.Cleanup(r.endProcesses)
	r.build()
	switch e.Way {
	case byCore, byAgent:
		return e.judgeJSON(t, r.core())
	case byRecording, byPassing:
		failing, passing := r.recordings()
		if failing == "" {
			return e.notSeen(t)
		}
		return e.judgeJSON(t, r.crash(failing, passing))
	case byHunt:
		return r.hunted()
	case byEndedHang:
		return e.judgeJSON(t, r.crash(r.recordHang(), ""))
	case silentHunt:
		return r.silent()
	case byReplays:
		return r.replays()
	case byTrace:
		return r.trace()
	case byRecord:
		return r.record()
	case bySecrets:
		return r.secrets()
	}
	t.Fatalf("no way %q", e.Way)
	return judgement{}
}

// endProcesses ends what a command that was ended has left running in the trial's directory.
func (r *trial) endProcesses() {
	list, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range list {
		if dir, err := os.Readlink(link); err == nil && dir == r.dir {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// notSeen is for a failure that did not happen in so many runs.
func (e *entry) notSeen(t *testing.T) judgement {
	t.Helper()
	if e.Rare == "" {
		t.Fatalf("the program did not fail in %d runs", e.Runs)
	}
	t.Skipf("the program did not fail in %d runs: %s", e.Runs, e.Rare)
	return judgement{}
}

func (e *entry) judgeJSON(t *testing.T, out ended) judgement {
	t.Helper()
	c, err := decode([]byte(out.stdout))
	if err != nil {
		return judgement{wrong, []string{"crash ended with status " + status(out) + ": " + out.stderr}}
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	return e.judge(c)
}

func status(o ended) string {
	text, _ := json.Marshal(o.status)
	return string(text)
}

// build compiles the program.
func (r *trial) build() {
	r.t.Helper()
	source, err := filepath.Abs(filepath.Join(programs, r.File))
	if err != nil {
		r.t.Fatal(err)
	}
	r.exe = filepath.Join(r.dir, strings.TrimSuffix(filepath.Base(r.File), filepath.Ext(r.File)))
	args := append([]string{"-g", "-w", "-pthread", "-o", r.exe, source}, r.flags...)
	switch filepath.Ext(r.File) {
	case ".sh":
		helper := &trial{entry: &entry{File: "hostile/handler2.c"}, t: r.t, dir: r.dir, flags: r.flags}
		helper.build()
		text, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(r.exe, text, 0o700)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		return
	case ".go":
		r.compile("go", append([]string{"build", "-o", r.exe}, append(r.flags, source)...)...)
	case ".rs":
		r.compile("rustc", append([]string{"-g", "-A", "warnings", "-o", r.exe, source}, r.flags...)...)
	case ".cc", ".cpp":
		r.compile("g++", args...)
	default:
		if r.Instrumented {
			r.compile(tool(r.t), append([]string{"cc"}, args...)...)
			return
		}
		r.compile("gcc", args...)
	}
}

func (r *trial) compile(name string, args ...string) {
	r.t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		r.t.Skip(err)
	}
	if out := r.run(name, args...); out.status != 0 {
		r.t.Fatalf("%s %v: %s%s", name, args, out.stdout, out.stderr)
	}
}

// core has the program leave a core, and reads it.
func (r *trial) core() ended {
	r.t.Helper()
	exe, run := r.exe, crashtest.Run{Args: r.Args}
	if r.Way == byAgent {
		exe, run.Args = tool(r.t), append([]string{"run", "--", r.exe}, r.Args...)
		crashtest.NeedKernelCores(r.t)
	}
	return r.run(tool(r.t), append([]string{"crash", "--core", crashtest.Core(r.t, exe, run), "--exe", r.exe, "-f", "json"}, r.Tool...)...)
}

// recordings are of a run that failed and, if the way has it, of one that passed.
func (r *trial) recordings() (failing, passing string) {
	r.t.Helper()
	for range max(r.Runs, 1) {
		if failing = r.recorded(r.Args, false); failing != "" {
			break
		}
	}
	if failing == "" || r.Way != byPassing {
		return failing, ""
	}
	args := r.PassingArgs
	if args == nil {
		args = r.Args
	}
	for range max(r.Runs, 1) {
		if passing = r.recorded(args, true); passing != "" {
			return failing, passing
		}
	}
	r.t.Fatalf("no run of %d passed", r.Runs)
	return "", ""
}

// recorded records a run; "" if it did not end as it should.
func (r *trial) recorded(args []string, passes bool) string {
	r.t.Helper()
	dir, err := os.MkdirTemp(r.dir, "recordings-")
	if err != nil {
		r.t.Fatal(err)
	}
	out := r.run(tool(r.t), append([]string{"record", "--all", "-o", dir, "--", r.exe}, args...)...)
	if out.timedOut {
		r.t.Fatalf("record did not end: %s", out.stderr)
	}
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(list) != 1 {
		r.t.Fatalf("record left %v: %v\n%s", list, err, out.stderr)
	}
	if strings.HasSuffix(list[0], "-passed") == passes {
		return list[0]
	}
	if err := os.RemoveAll(dir); err != nil {
		r.t.Fatal(err)
	}
	return ""
}

func (r *trial) crash(failing, passing string) ended {
	r.t.Helper()
	args := append([]string{"crash", "--recording", failing, "-f", "json", "--time", "3m"}, r.Tool...)
	if passing != "" {
		args = append(args, "--passing", passing)
	}
	return r.run(tool(r.t), args...)
}

// recordHang records a run that waits for ever, and interrupts it as a user does, when it
// has not ended for so long.
func (r *trial) recordHang() string {
	r.t.Helper()
	const patience = 3 * time.Second
	dir := filepath.Join(r.dir, "recordings")
	r.runUntil(patience, syscall.SIGINT, tool(r.t), append([]string{"record", "-o", dir, "--", r.exe}, r.Args...)...)
	list, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(list) != 1 {
		r.t.Fatalf("record left %v", list)
	}
	return list[0]
}

// huntReport is the part of hunt's JSON that is read.
type huntReport struct {
	Found   bool `json:"found"`
	Minimal *struct {
		Failing string `json:"failing_recording"`
		Passing string `json:"passing_recording"`
	} `json:"minimal"`
}

func (r *trial) hunt(seeds string) (huntReport, ended) {
	r.t.Helper()
	out := r.run(tool(r.t), append([]string{"hunt", "--seeds", seeds, "-f", "json", "--"}, append([]string{r.exe}, r.Args...)...)...)
	var report huntReport
	if err := json.Unmarshal([]byte(out.stdout), &report); err != nil {
		r.t.Fatalf("hunt: status %d: %v\n%s", out.status, err, out.stderr)
	}
	return report, out
}

// hunted has hunt find the failure, whose recordings are diagnosed.
func (r *trial) hunted() judgement {
	r.t.Helper()
	report, out := r.hunt("400")
	if !report.Found {
		return r.notSeen(r.t)
	}
	if report.Minimal == nil || report.Minimal.Failing == "" {
		return judgement{wrong, []string{"hunt kept no recording: " + out.stderr}}
	}
	return r.judgeJSON(r.t, r.crash(report.Minimal.Failing, report.Minimal.Passing))
}

func (r *trial) silent() judgement {
	r.t.Helper()
	if report, _ := r.hunt("100"); report.Found {
		return judgement{wrong, []string{"hunt says that a right program fails"}}
	}
	return judgement{result: right}
}

// replays are to reach the recorded end with the recorded state.
func (r *trial) replays() judgement {
	r.t.Helper()
	recording := r.recorded(r.Args, true)
	if recording == "" {
		r.t.Fatal("the program failed")
	}
	j := judgement{result: right}
	for range 3 {
		out := r.run(tool(r.t), "replay", recording, "--verify", "--budget", "1m", "-f", "json")
		var report struct {
			Identical *bool `json:"identical"`
		}
		if err := json.Unmarshal([]byte(out.stdout), &report); err != nil || report.Identical == nil || !*report.Identical {
			j.worsen(unknown, "a replay ended with status %d and is not identical: %v %s", out.status, err, out.stderr)
		}
	}
	return j
}

func (r *trial) trace() judgement {
	r.t.Helper()
	recording, _ := r.recordings()
	out := r.run(tool(r.t), append([]string{"trace", "--recording", recording, "-f", "json"}, r.Tool...)...)
	const shown, partly = 0, 4
	if out.timedOut || out.status != shown && out.status != partly {
		return judgement{wrong, []string{"trace ended with status " + status(out) + ": " + out.stderr}}
	}
	return judgement{result: right}
}

func (r *trial) record() judgement {
	r.t.Helper()
	const enough = 30 * time.Second
	out := r.runUntil(enough, nil, tool(r.t), append([]string{"record", "--all", "-o", filepath.Join(r.dir, "recordings"), "--", r.exe}, r.Args...)...)
	list, _ := filepath.Glob(filepath.Join(r.dir, "recordings", "*"))
	if out.timedOut || len(list) == 0 && out.stderr == "" {
		return judgement{wrong, []string{"record did not end: " + out.stderr}}
	}
	return judgement{result: right}
}

// secrets makes a report of a core in each format.
func (r *trial) secrets() judgement {
	r.t.Helper()
	j := judgement{result: right}
	core := crashtest.Core(r.t, r.exe, crashtest.Run{})
	for _, format := range []string{"text", "markdown", "html", "json", "sarif"} {
		out := r.run(tool(r.t), "crash", "--core", core, "--exe", r.exe, "-f", format)
		if out.status != 0 {
			j.worsen(wrong, "%s: status %d: %s", format, out.status, out.stderr)
		}
		for _, line := range strings.Split(out.stdout, "\n") {
			if at := strings.Index(line, "SEKRET"); at >= 0 {
				j.worsen(wrong, "%s has a secret: ...%.80s", format, line[max(at-30, 0):])
				break
			}
		}
	}
	return j
}
