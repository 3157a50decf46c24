package realprograms

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// identity is a real program that is recorded to a failure and replayed.
type identity struct {
	name string
	// needs are commands that must be installed.
	needs []string
	// setup is a bash script that runs before, in the directory.
	setup string
	// command is a bash command line; the program in it is recorded, without
	// the shell. It fails at its end by a preloaded library, unless it is one
	// that fails by itself or has a client.
	command string
	// client is a bash script that runs while the program runs and ends it.
	client string
	env    []string
	// child: one of the program's descendants fails, not the program.
	child bool
	// never says what may keep it from being identical where a recording has the order of events; "" is nothing.
	never string
	// turns says the same where threads take turns.
	turns string
	// rarely says what may keep a few recordings in a hundred from being identical. Others are made
	// then. "" is nothing.
	rarely string
	// limits are kinds of limits that the recording must name.
	limits []string
}

// level is the value of record's --races with which the programs are recorded: DIAGNOSE_IDENTITY_RACES, or else
// the order of events.
func level() string { return cmp.Or(os.Getenv("DIAGNOSE_IDENTITY_RACES"), "events") }

// reason says what may keep the program from being identical at this level.
func (p *identity) reason() string {
	if level() == "turns" {
		return p.turns
	}
	return p.never
}

// replays is how often recordings are replayed, and recordings how many are made: few in every test
// run, all with DIAGNOSE_IDENTITY.
func replays(t testing.TB) (recordings, times int) {
	t.Helper()
	text := os.Getenv("DIAGNOSE_IDENTITY")
	if text == "" {
		return 1, 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		t.Fatalf("DIAGNOSE_IDENTITY=%s: want a number of replays", text)
	}
	return 4, n
}

// The limits are longer than a program here needs on a machine under load.
const (
	recordLimit = time.Minute
	replayLimit = time.Minute
)

func (p *identity) compareRuns(t *testing.T) {
	t.Parallel()
	need(t, append([]string{"bash"}, p.needs...)...)
	quick := os.Getenv("DIAGNOSE_IDENTITY") == ""
	if p.reason() != "" && quick {
		t.Skipf("nothing to be sure of: %s (DIAGNOSE_IDENTITY=20 tries it)", p.reason())
	}
	recordings, times := replays(t)
	row := p.row()
	for i := range recordings {
		p.try(t, &row, i == 0, times)
		// Other recordings are replayed twice.
		times = 2
	}
	for i := 0; p.rarely != "" && quick && row.failures() > 0; i++ {
		if i == spareRecordings {
			t.Errorf("%s: no recording of %d is identical", p.name, i+1)
			break
		}
		row = p.row()
		p.try(t, &row, true, times)
	}
	addRow(row)
	t.Log(row.line())
}

// row is an empty row. The directories in the command are those of this run.
func (p *identity) row() tableRow {
	command := strings.ReplaceAll(p.command, "$PWD/", "")
	if filepath.IsAbs(command) {
		command = filepath.Base(command)
	}
	return tableRow{name: p.name, command: command, reason: p.reason()}
}

// try records once and replays the recording the given number of times.
func (p *identity) try(t *testing.T, row *tableRow, first bool, times int) {
	t.Helper()
	dir := p.record(t)
	tree := openTree(t, dir)
	defer closeTree(tree)
	if first {
		p.check(t, tree)
		row.describe(t, tree)
	}
	for n := range times {
		for j, rec := range tree {
			// There are many children: the first ones are always replayed, others twice.
			if j > 3 && n >= 2 || row.failures() >= mostFailures {
				continue
			}
			p.replay(t, row, first, rec)
		}
	}
}

// spareRecordings are made, in every test run, of programs whose recordings are rarely not
// identical.
const spareRecordings = 2

// mostFailures: a replay that fails takes long, and others fail in the same way.
const mostFailures = 3

// record runs the program once and returns its recording's directory.
func (p *identity) record(t testing.TB) string {
	t.Helper()
	parent := t.TempDir()
	dir, out := filepath.Join(parent, "work"), filepath.Join(parent, "recordings")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	env := append(environment(nil), "HOME="+dir, "DIAGNOSE="+tool(t), "RECORDINGS="+out, "RACES="+level(),
		"XDG_CACHE_HOME="+cacheHome(t))
	env = append(env, p.env...)
	script := within + p.setup + "\n"
	const recorded = `"$DIAGNOSE" record --all --races="$RACES" --output "$RECORDINGS" -- `
	if p.client == "" {
		program, _, _ := strings.Cut(p.command, " ")
		env = append(env, "NAME="+filepath.Base(program), "PRELOAD="+plant(t))
		script += `PLANT="$NAME" LD_PRELOAD="$PRELOAD" exec ` + recorded + p.command
	} else {
		script += recorded + p.command + " </dev/null & recorder=$!\n" + p.client + "\nwait $recorder"
	}
	cmd := bounded(t, recordLimit, "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, env
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	// The script may have left processes running.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", p.name, err, tail(output.String()))
	}
	if code := cmd.ProcessState.ExitCode(); code == 3 && strings.Contains(output.String(), "cannot be recorded here") {
		t.Skip(output.String())
	} else if failed := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGABRT || code == 128+int(syscall.SIGABRT); !failed && !p.child {
		t.Fatalf("%s: %v, want SIGABRT\n%s", p.name, cmd.ProcessState, tail(output.String()))
	}
	found, _ := filepath.Glob(filepath.Join(out, "*", record.ManifestName))
	if len(found) != 1 {
		t.Fatalf("%s: %d recordings\n%s", p.name, len(found), tail(output.String()))
	}
	return filepath.Dir(found[0])
}

// check checks that the recording has the properties that the test is for.
func (p *identity) check(t testing.TB, tree []*record.Recording) {
	t.Helper()
	failed := false
	for i, rec := range tree {
		m := rec.Manifest
		failed = failed || m.Outcome.Kind == record.OutcomeSignal && m.Outcome.Signal == int(syscall.SIGABRT) && (i == 0 || p.child)
		for _, l := range m.Limits {
			// Many recordings have the limit that a library might query the processor. How many turns ended at a place
			// that may look like another is in the table.
			if p.reason() == "" && l.Kind != "random" && l.Kind != "turns" && !contains(p.limits, l.Kind) {
				t.Errorf("%s: %s: the recording has the limit %s: %s", p.name, rec.Dir, l.Kind, l.Text)
			}
		}
	}
	if !failed {
		t.Errorf("%s did not fail", p.name)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// openTree opens a recording and those of all its descendants; it is first.
func openTree(t testing.TB, dir string) []*record.Recording {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tree := []*record.Recording{rec}
	for _, c := range rec.Manifest.Children {
		tree = append(tree, openTree(t, filepath.Join(dir, filepath.FromSlash(c.Path)))...)
	}
	return tree
}

func closeTree(tree []*record.Recording) {
	for _, rec := range tree {
		rec.Close()
	}
}

// replay replays once and compares.
func (p *identity) replay(t *testing.T, row *tableRow, first bool, rec *record.Recording) {
	t.Helper()
	began := time.Now()
	why := replayOnce(t.Context(), rec)
	if first && rec.Manifest.Parent == nil && why == "" {
		row.replayed = append(row.replayed, time.Since(began))
	}
	c := &row.others
	if first && rec.Manifest.Parent == nil {
		c = &row.first
	}
	c.all++
	if why == "" {
		c.identical++
		return
	}
	row.note(why)
	report := t.Errorf
	if p.reason() != "" || p.rarely != "" {
		report = t.Logf
	}
	report("%s: %s", rec.Manifest.Program.Path, why)
}

// replayOnce returns the differences, "" if there are none.
func replayOnce(parent context.Context, rec *record.Recording) string {
	ctx, cancel := context.WithTimeout(parent, replayLimit)
	defer cancel()
	_, err := rec.Core()
	// The end of a process that executed another program was not kept.
	verify := rec.Manifest.Outcome.Kind != record.OutcomeExec
	if verify && err != nil {
		return fmt.Sprintf("no core: %v", err)
	}
	r, err := replay.Run(ctx, rec, replay.PlainRequest{Verify: verify})
	if err != nil {
		return err.Error()
	}
	if !verify {
		return ""
	}
	c := r.Comparison
	switch {
	case c == nil || c.Threads == 0 || c.Compared == 0:
		return "nothing was compared"
	case c.Identical():
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d bytes in %d ranges, %d registers, %d mappings differ", c.Bytes, c.Ranges, c.Registers, c.Mappings)
	for i := range c.Differences[:min(len(c.Differences), 12)] {
		b.WriteString("\n  " + c.Differences[i].String())
	}
	return b.String()
}

var buildTool = sync.OnceValues(func() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "diagnose")
	out, err := exec.Command("go", "build", "-o", path, "diagnose/cmd/diagnose").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// tool is the path of diagnose itself.
func tool(t testing.TB) string {
	t.Helper()
	// Built before the time of a recording runs.
	recordtest.Library(t)
	path, err := buildTool()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildPlant = sync.OnceValues(func() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "plant.so")
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, "testdata/record/plant.c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("plant.c: %w\n%s", err, out)
	}
	return path, nil
})

// plant is the path of the library that makes a program fail at its end.
func plant(t testing.TB) string {
	t.Helper()
	path, err := buildPlant()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built is the directory of the compiled programs, removed by TestMain.
var built string

var buildDir = sync.OnceValues(func() (string, error) {
	var err error
	built, err = os.MkdirTemp("", "realprograms-")
	return built, err
})

// cacheHome is where the agent is kept, so that it is built once for all.
func cacheHome(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	return dir
}
