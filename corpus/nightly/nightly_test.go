package nightly

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/evidence"
	"diagnose/replay/record"
	"diagnose/reports"
)

// The test binary is also a night that can be killed, and the diagnose that it runs.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("NIGHTLY_TEST_DIAGNOSE") != "":
		os.Exit(fakeDiagnose(os.Args[1:]))
	case os.Getenv("NIGHTLY_TEST_NIGHT") != "":
		if err := fakeNight(os.Getenv("NIGHTLY_TEST_NIGHT"), os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// logName is a file that each analysis writes a line to.
const logName = "NIGHTLY_TEST_LOG"

func fakeNight(dir, summary string) error {
	c, err := corpus.Change(context.Background(), dir)
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := Diagnose(context.Background(), options(c))
	if err != nil {
		return err
	}
	s, err := Summarize(context.Background(), c, run, 24*time.Hour, nil)
	if err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(summary, text, 0o600)
}

func options(c *corpus.Corpus) Options {
	return Options{Corpus: c, Version: "v1", Command: []string{os.Args[0]}, Environ: []string{"NIGHTLY_TEST_DIAGNOSE=1"},
		Since: 24 * time.Hour, Jobs: 2, Time: time.Minute, Memory: 1 << 30}
}

// fakeDiagnose acts on the arguments of the recorded program.
func fakeDiagnose(args []string) int {
	flag := func(name string) string {
		if i := slices.Index(args, name); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	dir := flag("--recording")
	if dir == "" {
		dir = filepath.Dir(flag("--core"))
	}
	m, err := record.ReadManifest(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "diagnose:", err)
		return 3
	}
	if f, err := os.OpenFile(os.Getenv(logName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
		fmt.Fprintf(f, "%s %d\n", filepath.Base(dir), os.Getpid())
		f.Close()
	}
	what, cause := string(m.Program.Args[1]), string(m.Program.Args[2])
	if os.Getenv("NIGHTLY_TEST_SLOW") != "" {
		time.Sleep(20 * time.Millisecond)
	}
	switch {
	case what == "hang":
		child := exec.Command("sleep", "600")
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		child.Start()
		fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
		os.WriteFile(os.Getenv(logName)+".child", fmt.Append(nil, child.Process.Pid), 0o600)
		time.Sleep(10 * time.Minute)
	case what == "eat":
		useMemory()
		return 7
	case what == "die":
		syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Minute)
	case what == "garbage":
		os.WriteFile(flag("--output"), []byte("{"), 0o600)
		return 0
	case what == "refuse" && flag("--recording") != "":
		fmt.Fprintln(os.Stderr, "diagnose: the program was built again \x1b[2J")
		return 3
	case what == "alone" && slices.Contains(args, "--passing"):
		fmt.Fprintln(os.Stderr, "diagnose: the passing recording is of another program")
		return 3
	}
	if cause == "compared" && !slices.Contains(args, "--passing") {
		cause = "not compared"
	}
	return report(flag("--output"), cause, flag("--recording") != "")
}

// useMemory touches four gigabytes, if it can.
func useMemory() {
	var all [][]byte
	for range 4096 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, len(all))
}

func report(name, cause string, replayed bool) int {
	c := &evidence.Case{Program: evidence.Program{Exe: "/srv/bin/bank", BuildID: "00ff"}, Stacks: []evidence.ThreadGroup{},
		Failure: evidence.Failure{Kind: evidence.Abort, Sentence: "abort in withdraw", Proof: evidence.FromCore,
			Signal: &evidence.Signal{Number: 6, Name: "SIGABRT"}, Site: &evidence.Site{PC: 1, Module: "/srv/bin/bank", Function: "withdraw"}}}
	if replayed {
		c.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseHeapOverflow, Summary: cause + " overflows", Proof: evidence.Replayed,
			Site: &evidence.Site{Function: cause, File: "bank.c", Line: 7}}}}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = reports.Write(f, c, reports.Options{Format: reports.JSON, Version: "v1"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "diagnose:", err)
		return 1
	}
	return 0
}

// failure is a recording that is diagnosed as what says.
type failure struct {
	what, cause string
	ago         time.Duration
	core        bool
	passed      bool
}

// filled makes a corpus of failures, and returns it with their ids.
func filled(t testing.TB, list ...failure) (*corpus.Corpus, []string) {
	t.Helper()
	c, err := corpus.Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv(logName, filepath.Join(t.TempDir(), "log"))
	var ids []string
	for i, x := range list {
		ids = append(ids, put(t, c, i, x))
	}
	return c, ids
}

func put(t testing.TB, c *corpus.Corpus, i int, x failure) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-x.ago - time.Duration(i)*time.Millisecond)
	o := record.Outcome{Kind: record.OutcomeSignal, Signal: 6}
	if x.passed {
		o = record.Outcome{Kind: record.OutcomePassed}
	}
	m := record.Manifest{PID: 4711, Outcome: o, Times: record.Times{Started: at, Ended: &at},
		Program: record.Program{Path: "/srv/bin/bank", Args: []record.Text{"bank", record.Text(x.what), record.Text(x.cause)}, BuildID: "00ff"}}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if x.core {
		if err := os.WriteFile(filepath.Join(dir, "core"), fmt.Append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00"), i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := c.Add(t.Context(), dir, corpus.AddOptions{Move: true})
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func night1(t testing.TB, o Options) *Run {
	t.Helper()
	run, err := Diagnose(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func summary(t testing.TB, c *corpus.Corpus, run *Run) *Summary {
	t.Helper()
	s, err := Summarize(t.Context(), c, run, 24*time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// analyses returns the names of the started analyses, in their order.
func analyses(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv(logName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		id, _, _ := strings.Cut(line, " ")
		list = append(list, id)
	}
	return list
}

func TestNight(t *testing.T) {
	c, ids := filled(t, failure{what: "ok", cause: "copy"}, failure{what: "ok", cause: "parse"}, failure{what: "ok", cause: "copy", ago: 30 * time.Hour},
		failure{what: "refuse", core: true}, failure{what: "refuse"}, failure{what: "garbage"}, failure{what: "die"}, failure{what: "alone", cause: "alone"},
		failure{what: "ok", cause: "compared"}, failure{what: "ok", passed: true})
	var done []Progress
	o := options(c)
	o.Progress = func(p Progress) { done = append(done, p) }
	run := night1(t, o)
	if run.Diagnosed != 6 || run.Undiagnosed != 3 || run.NotReached != 0 || run.CPU <= 0 || run.PerCoreHour <= 0 {
		t.Errorf("%+v", run)
	}
	if last := done[len(done)-1]; len(done) != 18 || last.Done != 9 || last.Total != 9 || last.Result == nil {
		t.Errorf("%d steps, the last one %+v", len(done), last)
	}
	s := summary(t, c, run)
	causes := map[string]int{}
	for _, g := range s.New {
		causes[g.Summary] = g.Count
	}
	want := map[string]int{"copy overflows": 2, "parse overflows": 1, "alone overflows": 1, "compared overflows": 1, "abort in withdraw": 1}
	if fmt.Sprint(causes) != fmt.Sprint(want) || len(s.Known)+len(s.Back) != 0 || s.Failures != 8 || s.FailuresBefore != 1 || !s.Alarming() {
		t.Errorf("%v, want %v\n%+v", causes, want, s)
	}
	reasons := map[string]string{}
	for _, m := range append(s.Undiagnosed, s.Partial...) {
		reasons[m.Entry] = m.Reason
	}
	for i, says := range map[int]string{3: "from the core alone: the program was built again", 4: "built again", 5: "its report", 6: "SIGSEGV: segmentation violation",
		7: "not compared with runs that passed"} {
		if !strings.Contains(reasons[ids[i]], says) {
			t.Errorf("%d: %q, want %q", i, reasons[ids[i]], says)
		}
	}
	if len(reasons) != 5 {
		t.Errorf("%v", reasons)
	}
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"failures: 8 since", "5 new causes, 0 back, 0 known", "copy overflows", "Not diagnosed: 3", "Diagnosed in part: 2", `built again \x1b[2J`} {
		if !strings.Contains(text.String(), says) {
			t.Errorf("%q is not in:\n%s", says, text.String())
		}
	}
	// A second night has nothing to do, and nothing is new once it was reported.
	before := len(analyses(t))
	if err := s.Told(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	again := night1(t, options(c))
	if got := summary(t, c, again); again.Diagnosed+again.Undiagnosed != 0 || len(got.New) != 0 || len(got.Known) != 5 || got.Alarming() || len(analyses(t)) != before {
		t.Errorf("%+v\n%+v", again, got)
	}
	// A failure without a report is tried again on request, and every failure by a later
	// version.
	o = options(c)
	o.Retry = true
	if run := night1(t, o); run.Undiagnosed != 3 || run.Diagnosed != 0 {
		t.Errorf("%+v", run)
	}
	o.Version = "v2"
	if run := night1(t, o); run.Undiagnosed != 3 || run.Diagnosed != 6 {
		t.Errorf("%+v", run)
	}
}

// TestNightImported: recordings from an archive are replayed only on request, both for their
// own diagnosis and for comparison; cores are read.
func TestNightImported(t *testing.T) {
	from, _ := filled(t, failure{what: "ok", cause: "copy", core: true}, failure{what: "ok", passed: true})
	var archive bytes.Buffer
	if _, err := from.Export(t.Context(), &archive, corpus.Filter{}); err != nil {
		t.Fatal(err)
	}
	c, ids := filled(t, failure{what: "ok", cause: "compared"})
	if _, err := c.Import(t.Context(), &archive, 0); err != nil {
		t.Fatal(err)
	}
	run := night1(t, options(c))
	if run.Diagnosed != 1 || run.NotTrusted != 1 || !slices.Equal(analyses(t), ids) {
		t.Errorf("%+v, %q", run, analyses(t))
	}
	s := summary(t, c, run)
	if len(s.New) != 1 || s.New[0].Summary != "not compared overflows" {
		t.Errorf("%+v", s.New)
	}
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil || !strings.Contains(text.String(), "not replayed: 1 recording came from elsewhere") {
		t.Errorf("%s, %v", text.String(), err)
	}
	o := options(c)
	o.TrustImported = true
	if run := night1(t, o); run.Diagnosed != 1 || run.NotTrusted != 0 || len(analyses(t)) != 2 {
		t.Errorf("%+v, %q", run, analyses(t))
	}
	o.Version = "v2"
	if run := night1(t, o); run.Diagnosed != 2 {
		t.Errorf("%+v", run)
	}
	if s := summary(t, c, run); !slices.ContainsFunc(s.New, func(g Group) bool { return g.Summary == "compared overflows" }) {
		t.Errorf("%+v", s.New)
	}
}
