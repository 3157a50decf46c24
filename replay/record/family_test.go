package record

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFamilyBlamed(t *testing.T) {
	died := func(s unix.Signal) Outcome { return Outcome{Kind: OutcomeSignal, Signal: int(s)} }
	sentItself := func(s unix.Signal, pid int) Outcome {
		return Outcome{Kind: OutcomeSignal, Signal: int(s), Sender: pid}
	}
	exit := func(status int) Outcome { return Outcome{Kind: OutcomeExit, Status: status} }
	passed := Outcome{Kind: OutcomePassed}
	type p struct {
		parent  int
		outcome Outcome
		ended   int // seconds
	}
	for name, x := range map[string]struct {
		processes []p
		blamed    int
		failed    string
	}{
		"nothing failed":                       {[]p{{-1, passed, 9}, {0, exit(1), 3}}, -1, "[]"},
		"a status alone":                       {[]p{{-1, exit(2), 9}, {0, exit(1), 3}}, 0, "[1 0]"},
		"a shell's status":                     {[]p{{-1, exit(1), 9}, {0, exit(1), 2}, {0, died(unix.SIGSEGV), 3}}, 2, "[1 2 0]"},
		"the shell passed":                     {[]p{{-1, passed, 9}, {0, exit(1), 2}, {0, died(unix.SIGSEGV), 3}}, 2, "[2]"},
		"the first that ended":                 {[]p{{-1, exit(1), 9}, {0, died(unix.SIGABRT), 5}, {0, died(unix.SIGSEGV), 3}}, 2, "[2 1 0]"},
		"the one whose status is passed on":    {[]p{{-1, exit(128 + 6), 9}, {0, died(unix.SIGABRT), 5}, {0, died(unix.SIGSEGV), 3}}, 1, "[2 1 0]"},
		"a grandchild":                         {[]p{{-1, exit(1), 9}, {0, exit(139), 5}, {1, died(unix.SIGSEGV), 3}}, 2, "[2 1 0]"},
		"a crash of its own":                   {[]p{{-1, died(unix.SIGSEGV), 9}, {0, died(unix.SIGSEGV), 3}}, 0, "[1 0]"},
		"a child's signal, passed on":          {[]p{{-1, sentItself(unix.SIGSEGV, 100), 9}, {0, died(unix.SIGSEGV), 3}}, 1, "[1 0]"},
		"another signal that it sent itself":   {[]p{{-1, sentItself(unix.SIGABRT, 100), 9}, {0, died(unix.SIGSEGV), 3}}, 0, "[1 0]"},
		"a child's child passes its signal on": {[]p{{-1, passed, 9}, {0, sentItself(unix.SIGSEGV, 101), 5}, {1, died(unix.SIGSEGV), 3}}, 2, "[2 1]"},
		"stopped by hand after a child's end":  {[]p{{-1, died(unix.SIGINT), 9}, {0, died(unix.SIGSEGV), 3}}, 1, "[1 0]"},
	} {
		f := &Family{}
		for i, p := range x.processes {
			at := time.Unix(int64(p.ended), 0)
			f.Processes = append(f.Processes, Process{PID: 100 + i, Parent: p.parent, Outcome: p.outcome, Ended: &at})
		}
		if got := f.Blamed(); got != x.blamed {
			t.Errorf("%s: process %d is blamed, want %d", name, got, x.blamed)
		}
		if got := fmt.Sprint(f.Failed()); got != x.failed {
			t.Errorf("%s: failed are %s, want %s", name, got, x.failed)
		}
	}
}

// A manifest of very many children, each of which died of a signal that it sent itself, is read
// fast, and only up to the limit.
func TestFamilyOfManyProcesses(t *testing.T) {
	m := &Manifest{PID: 1, Outcome: Outcome{Kind: OutcomeExit, Status: 1}}
	for pid := 2; pid < 2*mostProcesses; pid++ {
		at := time.Unix(int64(pid), 0)
		m.Unrecorded = append(m.Unrecorded, Unrecorded{PID: pid, Ended: &at, Outcome: Outcome{Kind: OutcomeSignal, Signal: int(unix.SIGABRT), Sender: pid}})
	}
	var f Family
	f.AddProcess(m, ".", -1)
	if len(f.Processes) != mostProcesses || f.Unread == nil {
		t.Fatalf("%d processes, %v", len(f.Processes), f.Unread)
	}
	if got := f.Blamed(); got != 1 {
		t.Errorf("process %d is blamed", got)
	}
	// Each is the child of the previous one: all of them pass a signal on.
	for i := range f.Processes {
		at := time.Unix(int64(2*mostProcesses-i), 0)
		f.Processes[i].Parent, f.Processes[i].Ended = i-1, &at
	}
	if got, last := f.Blamed(), mostProcesses-1; got != last {
		t.Errorf("process %d is blamed, want %d", got, last)
	}
}

// A process that executes other programs is one process, and ends as its last program does.
func TestFamilyOfPrograms(t *testing.T) {
	var f Family
	first := f.AddProcess(&Manifest{PID: 7, Program: Program{Path: "/bin/env"}, Outcome: Outcome{Kind: OutcomeExec}}, ".", -1)
	again := f.AddProcess(&Manifest{PID: 7, Program: Program{Path: "/bin/a"}, Parent: &Parent{PID: 7, Exec: true}, Outcome: Outcome{Kind: OutcomeExit, Status: 3},
		Unrecorded: []Unrecorded{{PID: 8, Program: "/bin/b", Outcome: Outcome{Kind: OutcomeSignal, Signal: int(unix.SIGSEGV)}}}}, "children/7-1", first)
	if first != 0 || again != 0 || len(f.Processes) != 2 {
		t.Fatalf("%d, %d, %+v", first, again, f.Processes)
	}
	if p := f.Processes[0]; p.Program != "/bin/a" || p.Dir != "children/7-1" || p.Outcome.Status != 3 || p.Parent != -1 {
		t.Errorf("%+v", p)
	}
	if p := f.Processes[1]; !p.Unrecorded || p.Parent != 0 || p.Dir != "" || f.Blamed() != 1 {
		t.Errorf("%+v, blamed %d", p, f.Blamed())
	}
	if !slices.Equal(f.Failed(), []int{0, 1}) { // as neither is known to have ended earlier
		t.Errorf("failed: %v", f.Failed())
	}
}
