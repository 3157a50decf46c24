package racereport

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/evidence"
)

const report = `started
==================
WARNING: DATA RACE
Read at 0x00c0000180f8 by goroutine 8:
  main.(*counter).add()
      /src/race.go:10 +0x7d
  main.main.func1()
      /src/race.go:17 +0x12

Previous write at 0x00c0000180f8 by main goroutine:
  main.main()
      /src/race.go:21 +0x8f

Goroutine 8 (running) created at:
  main.main()
      /src/race.go:17 +0x78
==================
Found 1 data race(s)
`

func TestRead(t *testing.T) {
	again := strings.Replace(report, "0x00c0000180f8", "0x00c000018100", 2)
	r, err := Read(strings.NewReader(report + again))
	if err != nil || len(r.Races) != 1 || r.Cut != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	x := r.Races[0]
	read, write := x.Accesses[0], x.Accesses[1]
	if x.Times != 2 || len(x.Accesses) != 2 || read.Write || read.Goroutine != 8 || read.Addr != 0xc0000180f8 || !write.Write || write.Goroutine != 0 {
		t.Errorf("%+v", x)
	}
	if want := (evidence.Site{Function: "main.(*counter).add", File: "/src/race.go", Line: 10, FunctionOffset: 0x7d}); len(read.Stack) != 2 || read.Stack[0] != want {
		t.Errorf("the stack is %+v", read.Stack)
	}
	if len(x.Created) != 1 || x.Created[0].Goroutine != 8 || x.Created[0].Finished || len(x.Created[0].Stack) != 1 || x.Created[0].Stack[0].Line != 17 {
		t.Errorf("created: %+v", x.Created)
	}
}

// A text that ends in a report has no race that is half known.
func TestCut(t *testing.T) {
	whole := strings.Index(report, "Previous")
	r, err := Read(strings.NewReader(report[:whole]))
	if err != nil || len(r.Races) != 0 || r.Cut != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Read(strings.NewReader("nothing\n==================\nRead at 0x1 by goroutine 2:\n")); err != nil || len(r.Races)+r.Cut != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The detector of the installed Go is read, and a program without a race has none.
func TestDetector(t *testing.T) {
	for name, x := range map[string]struct {
		locked bool
		races  int
	}{"race": {false, 1}, "locked": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			r := detected(t, x.locked)
			if len(r.Races) < x.races || x.races == 0 && len(r.Races) > 0 || r.Cut != 0 {
				t.Fatalf("%+v", r)
			}
			for i := range r.Races {
				for _, a := range r.Races[i].Accesses {
					if len(a.Stack) < 2 || a.Stack[0].Function != "main.(*counter).add" || a.Stack[0].Line != 8 {
						t.Errorf("%+v", a)
					}
				}
			}
		})
	}
}

func detected(t *testing.T, locked bool) *Reports {
	t.Helper()
	dir := t.TempDir()
	text := "package main\n\nimport \"sync\"\n\ntype counter struct { n int }\n\n" +
		"//go:noinline\nfunc (c *counter) add() { c.n++ }\n\nfunc main() {\n\tc, wg, mu := &counter{}, sync.WaitGroup{}, sync.Mutex{}\n\tfor range 2 {\n\t\twg.Add(1)\n" +
		"\t\tgo func() {\n\t\t\tdefer wg.Done()\n\t\t\tLOCK\n\t\t\tc.add()\n\t\t\tUNLOCK\n\t\t}()\n\t}\n\twg.Wait()\n\tmu.Lock()\n}\n"
	lock, unlock := "", ""
	if locked {
		lock, unlock = "mu.Lock()", "mu.Unlock()"
	}
	text = strings.NewReplacer("UNLOCK", unlock, "LOCK", lock).Replace(text)
	source := filepath.Join(dir, "race.go")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "race")
	build := exec.Command("go", "build", "-race", "-o", exe, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no program with the race detector: %v: %s", err, out)
	}
	var said bytes.Buffer
	for range 10 { // the detector sees a race only where the accesses are near to each other
		run := exec.Command(exe)
		run.Stderr = &said
		run.Run()
	}
	r, err := Read(&said)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(report))
	f.Add([]byte("WARNING: DATA RACE\nRead at 0xffffffffffffffff by goroutine 999999999:\n  f()\n      a:1 +0x1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for i := range r.Races {
			if x := &r.Races[i]; len(x.Accesses) < 2 || len(x.Accesses) > mostAccesses || len(x.Created) > mostCreated || x.Times < 1 {
				t.Errorf("%+v", x)
			}
		}
	})
}
