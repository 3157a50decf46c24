package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/evidence"
	"diagnose/fleet/engine"
	"diagnose/reports"
)

// The test binary is also the diagnose that workers run.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("WORK_TEST_DIAGNOSE") != "":
		os.Exit(fakeDiagnose(os.Args[1:]))
	case os.Getenv("WORK_TEST_ENGINE") != "":
		if err := workAlone(os.Getenv("WORK_TEST_ENGINE"), os.Getenv("WORK_TEST_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeDiagnose does what the core says: its text begins with a word.
func fakeDiagnose(args []string) int {
	core := args[slices.Index(args, "--core")+1]
	text, err := os.ReadFile(core)
	if err != nil {
		fmt.Fprintln(os.Stderr, "diagnose:", err)
		return 3
	}
	what, _, _ := strings.Cut(string(text[headSize:]), " ")
	switch what {
	case "refuse":
		fmt.Fprintln(os.Stderr, "diagnose: it is no core")
		return 3
	case "slow":
		time.Sleep(600 * time.Millisecond)
	case "poison": // the worker is this process's parent
		syscall.Kill(os.Getppid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "who":
		what = fmt.Sprint(os.Getuid())
	}
	f, err := os.Create(args[slices.Index(args, "--output")+1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "diagnose:", err)
		return 1
	}
	c := &evidence.Case{Program: evidence.Program{Exe: "/srv/bin/" + what}, Stacks: []evidence.ThreadGroup{},
		Failure: evidence.Failure{Kind: evidence.Abort, Sentence: "abort in " + what, Proof: evidence.FromCore,
			Site: &evidence.Site{PC: 1, Module: "/srv/bin/" + what, Function: what}}}
	if what == "large" {
		c.Failure.Sentence = random(2 << 20)
	}
	if err := reports.Write(f, c, reports.Options{Format: reports.JSON, Version: "v1"}); err != nil {
		fmt.Fprintln(os.Stderr, "diagnose:", err)
		return 1
	}
	return 0
}

// random returns a text that cannot be compressed well.
func random(n int) string {
	var b strings.Builder
	for x := uint32(1); b.Len() < n; x = x*1664525 + 1013904223 {
		fmt.Fprintf(&b, "%08x", x)
	}
	return b.String()
}

// served returns an engine in this process.
func served(t testing.TB) *engine.Engine {
	t.Helper()
	s, err := engine.StartEmbedded(t.Context(), filepath.Join(t.TempDir(), "engine"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	e, err := s.Connect(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// filled makes a corpus of cores that say what their analysis does.
func filled(t testing.TB, list ...string) (*corpus.Corpus, []string) {
	t.Helper()
	c, err := corpus.Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var ids []string
	for i, what := range list {
		name := filepath.Join(t.TempDir(), "core")
		if err := os.WriteFile(name, core(fmt.Sprintf("%s %d", what, i)), 0o600); err != nil {
			t.Fatal(err)
		}
		added, err := c.Add(t.Context(), name, corpus.AddOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, added.ID)
	}
	return c, ids
}

// headSize is that of an ELF header.
const headSize = 64

// core returns a file that a corpus takes for a core: the head of one, and a text.
func core(text string) []byte {
	head := make([]byte, headSize)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18] = 4, 62 // ET_CORE, EM_X86_64
	return append(head, text...)
}

func coordinated(t testing.TB, e *engine.Engine, c *corpus.Corpus, o CoordinatorOptions) *Coordinator {
	t.Helper()
	o.Version, o.Scratch = "v1", c.Scratch
	k, err := Coordinate(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func workerOptions(t testing.TB) WorkerOptions {
	dir, err := os.MkdirTemp("", "work-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return WorkerOptions{Version: "v1", Command: []string{os.Args[0]}, Environ: []string{"WORK_TEST_DIAGNOSE=1"}, Jobs: 2, Dir: dir}
}

// working starts a worker, and ends it with the test.
func working(t testing.TB, e *engine.Engine, o WorkerOptions) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := Work(ctx, e, o); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
}

// workAlone is a worker that can be killed.
func workAlone(url, dir string) error {
	e, err := engine.Connect(context.Background(), engine.Options{URL: url, Team: "team"})
	if err != nil {
		return err
	}
	defer e.Close()
	return Work(context.Background(), e, WorkerOptions{Version: "v1", Command: []string{os.Args[0]}, Environ: []string{"WORK_TEST_DIAGNOSE=1"}, Jobs: 1, Dir: dir})
}

// listening returns an engine that other processes can connect to, and its URL.
func listening(t testing.TB) (*engine.Engine, string) {
	t.Helper()
	s, err := engine.Start(t.Context(), engine.ServerOptions{Dir: filepath.Join(t.TempDir(), "engine"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	e, err := s.Connect(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, s.URL()
}

func nightOptions(c *corpus.Corpus, k *Coordinator) nightly.Options {
	return nightly.Options{Corpus: c, Version: "v1", Since: 24 * time.Hour, Jobs: 8, Time: time.Minute, Memory: 1 << 30, Remote: k}
}

func TestNight(t *testing.T) {
	e := served(t)
	c, ids := filled(t, "copy", "refuse", "large", "copy", "who")
	k := coordinated(t, e, c, CoordinatorOptions{})
	working(t, e, workerOptions(t))
	run, err := nightly.Diagnose(t.Context(), nightOptions(c, k))
	if err != nil {
		t.Fatal(err)
	}
	if run.Diagnosed != 4 || run.Undiagnosed != 1 || run.NotReached != 0 || len(run.Fleet.Workers) != 1 || run.Fleet.Workers[0].Failures != 5 || run.MemoryBy != "" {
		t.Errorf("%+v, %+v", run, run.Fleet)
	}
	for i, want := range []string{"abort in copy", "", "", "abort in copy", "abort in"} {
		found, err := c.Find(t.Context(), ids[i])
		if err != nil || found.Diagnosis == nil || !strings.HasPrefix(found.Diagnosis.Summary, want) {
			t.Errorf("%d: %+v, %v", i, found.Diagnosis, err)
		}
	}
	if found, err := c.Find(t.Context(), ids[1]); err != nil || !strings.Contains(found.Diagnosis.Reason, "it is no core") {
		t.Errorf("%+v, %v", found.Diagnosis, err)
	}
	if report, err := c.Report(t.Context(), ids[2]); err != nil || len(report) < 2<<20 {
		t.Errorf("%d bytes, %v", len(report), err)
	}
	empty(t, k)
}

// empty fails if the engine still has jobs or results.
func empty(t *testing.T, k *Coordinator) {
	t.Helper()
	info, err := k.board.jobs.Info(t.Context())
	if err != nil || info.State.Msgs != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if keys, err := k.board.results.Keys(t.Context()); !errors.Is(err, jetstream.ErrNoKeysFound) {
		t.Errorf("%v, %v", keys, err)
	}
}

// A job that kills its workers is set aside after three tries, and the others are done.
func TestPoison(t *testing.T) {
	e, url := listening(t)
	c, ids := filled(t, "copy", "poison", "copy", "copy")
	k := coordinated(t, e, c, CoordinatorOptions{Claim: 500 * time.Millisecond})
	ended := make(chan struct{})
	var group sync.WaitGroup
	deaths := 0
	dir := workerOptions(t).Dir
	group.Go(func() {
		for {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "WORK_TEST_ENGINE="+url, "WORK_TEST_DIR="+dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			died := make(chan struct{})
			go func() { cmd.Wait(); close(died) }()
			select {
			case <-died:
				deaths++
			case <-ended:
				cmd.Process.Kill()
				<-died
				return
			}
		}
	})
	run, err := nightly.Diagnose(t.Context(), nightOptions(c, k))
	close(ended)
	group.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if run.Diagnosed != 3 || run.Undiagnosed != 1 || deaths != mostTries || len(run.Fleet.SetAside) != 1 {
		t.Fatalf("%+v, %+v, %d deaths", run, run.Fleet, deaths)
	}
	if s := run.Fleet.SetAside[0]; s.Entry != ids[1] || len(s.Tries) != mostTries || s.Tries[0].Error != "" {
		t.Errorf("%+v", s)
	}
	if found, err := c.Find(t.Context(), ids[1]); err != nil || !strings.Contains(found.Diagnosis.Reason, "set aside after 3 tries") {
		t.Errorf("%+v, %v", found.Diagnosis, err)
	}
	empty(t, k)
}

// What no worker can do is left, with what they lack, and nothing of it stays in the queue.
func TestUnable(t *testing.T) {
	e := served(t)
	c, ids := filled(t, "copy")
	k := coordinated(t, e, c, CoordinatorOptions{Patience: time.Second})
	run, err := nightly.Diagnose(t.Context(), nightOptions(c, k))
	if err != nil || len(run.Fleet.Unable) != 1 || run.Fleet.Unable[0].Lack != nil {
		t.Fatalf("%+v, %v", run, err)
	}
	o := workerOptions(t)
	o.Version = "v0"
	working(t, e, o)
	k = coordinated(t, e, c, CoordinatorOptions{Patience: 2 * time.Second})
	run, err = nightly.Diagnose(t.Context(), nightOptions(c, k))
	want := nightly.Lack{Kind: nightly.LackVersion, Name: "v1"}
	if err != nil || run.Diagnosed != 0 || len(run.Fleet.Unable) != 1 || run.Fleet.Unable[0].Lack == nil || *run.Fleet.Unable[0].Lack != want || !slices.Equal(run.Fleet.Unable[0].Entries, ids) {
		t.Fatalf("%+v, %+v, %v", run, run.Fleet, err)
	}
	empty(t, k)
}

// A root's worker gives each analysis a user of its own.
func TestConfined(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not supported here: only root can give analyses users")
	}
	e := served(t)
	c, ids := filled(t, "who")
	k := coordinated(t, e, c, CoordinatorOptions{})
	o := workerOptions(t)
	o.Confine = NewIsolation(os.Args[0])
	// The test binary is in a directory that is closed to others.
	exe := filepath.Join(o.Dir, "diagnose")
	if text, err := os.ReadFile(os.Args[0]); err != nil || os.WriteFile(exe, text, 0o755) != nil {
		t.Fatal(err)
	}
	o.Command = []string{exe}
	working(t, e, o)
	run, err := nightly.Diagnose(t.Context(), nightOptions(c, k))
	if err != nil || run.Diagnosed != 1 || !run.Fleet.Workers[0].Confined || run.Fleet.Workers[0].FreeWhy != "" {
		found, _ := c.Find(t.Context(), ids[0])
		t.Fatalf("%+v, %+v, %v, %+v", run, run.Fleet, err, found.Diagnosis)
	}
	found, err := c.Find(t.Context(), ids[0])
	uid := 0
	if err == nil {
		_, err = fmt.Sscanf(found.Diagnosis.Summary, "abort in %d", &uid)
	}
	if err != nil || uid < firstUser {
		t.Errorf("%+v, %v", found.Diagnosis, err)
	}
}

// A directory that others cannot reach is no reason to leave a failure alone, and is told.
func TestNotConfined(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not supported here: only root can give analyses users")
	}
	e := served(t)
	c, _ := filled(t, "copy")
	k := coordinated(t, e, c, CoordinatorOptions{})
	o := workerOptions(t)
	o.Confine = NewIsolation(os.Args[0])
	o.Dir = t.TempDir()
	if err := os.Chmod(filepath.Dir(o.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	working(t, e, o)
	run, err := nightly.Diagnose(t.Context(), nightOptions(c, k))
	if err != nil || run.Diagnosed != 1 || run.Fleet.Workers[0].FreeWhy == "" {
		t.Fatalf("%+v, %+v, %v", run, run.Fleet, err)
	}
}

// A result that was stored before a night was killed is taken by the next one.
func TestLeftResult(t *testing.T) {
	e := served(t)
	c, ids := filled(t, "copy")
	k := coordinated(t, e, c, CoordinatorOptions{})
	r := &Result{Version: JobVersion, Job: jobID(ids[0], "v1"), Diagnose: "v1", Reason: "left", Started: time.Now(), Worker: nightly.FleetWorker{Name: "gone"}}
	if first, err := k.board.create(t.Context(), k.board.results, r.Job, r); !first || err != nil {
		t.Fatal(first, err)
	}
	run, err := nightly.Diagnose(t.Context(), nightOptions(c, k))
	if err != nil || run.Undiagnosed != 1 || run.Fleet.Workers[0].Name != "gone" {
		t.Fatalf("%+v, %v", run, err)
	}
	empty(t, k)
}

// A job that is in the queue, or was put there by a call whose answer was lost, is there once.
func TestQueuedOnce(t *testing.T) {
	e := served(t)
	c, _ := filled(t)
	k := coordinated(t, e, c, CoordinatorOptions{})
	job := sampleJob()
	class, err := k.class(t.Context(), job.Needs)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := k.enqueue(t.Context(), job, class); err != nil {
			t.Fatal(err)
		}
	}
	info, err := k.board.jobs.Info(t.Context())
	if err != nil || info.State.Msgs != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	k.withdraw(t.Context(), class, job.ID)
	empty(t, k)
}
