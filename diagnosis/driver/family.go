package driver

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"diagnose/replay/record"
)

// Blamed returns the directory of the recording that a diagnosis of rec must use: rec's own, or
// that of a child process whose failure explains the run's. If pid is not 0 it is that process's.
// The error is an *InputError.
func Blamed(rec *record.Recording, pid int) (string, error) {
	family := record.ReadFamily(rec)
	at := family.Blamed()
	if pid != 0 {
		at = slices.IndexFunc(family.Processes, func(p record.Process) bool { return p.PID == pid })
		if at < 0 {
			return "", &InputError{fmt.Errorf("%s has no process %d", rec.Dir, pid)}
		}
	}
	if at < 0 {
		at = 0 // its reader reports whether it passed
	}
	p := &family.Processes[at]
	if p.Dir == "" {
		return "", &InputError{fmt.Errorf("recording %s: child process %d (%s) %s, and was not recorded to its end: %s", rec.Dir, p.PID, p.Program, p.Outcome.Deed(), ExecutedUnrecorded)}
	}
	return filepath.Join(rec.Dir, filepath.FromSlash(p.Dir)), nil
}

// Counterpart returns the directory, in the recording of a run that passed, of the process that
// corresponds to the one of failing. It is passing's own directory. If failing is the recording of
// a child process, it is that of the process of the same program with the same number among those
// that execute it, or else the first of them. It is empty if no such process passed.
func Counterpart(failing, passing *record.Recording) string {
	if failing.Manifest.Parent == nil || passing.Manifest.Parent != nil {
		return passing.Dir
	}
	program := failing.Manifest.Program.Path
	number := numberAmong(failing, program)
	found, count := "", 0
	for _, p := range record.ReadFamily(passing).Processes {
		if p.Program != program {
			continue
		}
		if usable := p.Outcome.Passed() && !p.Unrecorded; usable && (found == "" || count == number) {
			found = filepath.Join(passing.Dir, filepath.FromSlash(p.Dir))
		}
		count++
	}
	return found
}

// numberAmong counts the processes of a run before that of rec that execute the same program.
func numberAmong(rec *record.Recording, program record.Text) int {
	top := topOf(rec)
	defer closeUnless(top, rec)
	here, n := relativeTo(top, rec), 0
	for _, p := range record.ReadFamily(top).Processes {
		if p.Dir == here {
			break
		}
		if p.Program == program {
			n++
		}
	}
	return n
}

// topOf is the recording of the process that was started. It is rec itself if that is the process,
// or if rec was moved out of the run's directory.
func topOf(rec *record.Recording) *record.Recording {
	top := rec
	for {
		above, err := top.Parent()
		if err != nil {
			return top
		}
		closeUnless(top, rec)
		top = above
	}
}

func closeUnless(r, keep *record.Recording) {
	if r != keep {
		r.Close()
	}
}

// relativeTo is the path of rec in the directory of top, as in record.Process.Dir.
func relativeTo(top, rec *record.Recording) string {
	if top == rec {
		return "."
	}
	dir, err := filepath.Abs(rec.Dir)
	if err != nil {
		return ""
	}
	inside, err := filepath.Rel(top.Dir, dir)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(inside)
}

// mostEnded bounds the listed processes that failed without a crash.
const mostEnded = 10

// tellProcesses adds the other processes of the run that failed, if p belongs to that run.
func (rs *recordings) tellProcesses(d *draft, p *image.Process) {
	if p.Program.PID != rs.failing[0].Manifest.PID {
		return
	}
	rec := rs.failing[0]
	top := topOf(rec)
	defer closeUnless(top, rec)
	here := relativeTo(top, rec)
	shown := strings.TrimSuffix(strings.TrimSuffix(filepath.Clean(rec.Dir), filepath.FromSlash(here)), "/")
	if here == "." {
		shown = rec.Dir
	}
	family := record.ReadFamily(top)
	if family.Unread != nil {
		d.limit(evidence.Limit{Code: evidence.LimitFamily, Subject: top.Dir, Reason: "recordings of child processes cannot be read: " + family.Unread.Error()}.Worded())
	}
	run := &evidence.Run{}
	failed := family.Failed()
	for n, i := range failed {
		x := runProcess(family, i)
		x.Here = family.Processes[i].Dir == here && !x.Unrecorded
		if family.Processes[i].Dir != "" {
			x.Recording = filepath.Join(shown, filepath.FromSlash(family.Processes[i].Dir))
		}
		if !x.Here && !x.First && !family.Processes[i].Outcome.Crashed() && len(failed)-n > mostEnded {
			run.Omitted++
			continue
		}
		run.Processes = append(run.Processes, x)
	}
	if len(run.Processes) > 1 || len(run.Processes) == 1 && here != family.Processes[0].Dir {
		d.result.Run = run
	}
}

func runProcess(family *record.Family, i int) evidence.RunProcess {
	p := &family.Processes[i]
	o := &p.Outcome
	x := evidence.RunProcess{PID: p.PID, Program: string(p.Program), First: i == 0, Status: o.Status, Heap: o.Evidence, Unrecorded: p.Unrecorded}
	if p.Parent >= 0 {
		x.Parent = family.Processes[p.Parent].PID
	}
	switch o.Kind {
	case record.OutcomeSignal:
		x.Signal = wording.Signal(o.Signal)
	case record.OutcomeExit, record.OutcomePassed:
	default:
		x.Unknown = true
	}
	return x
}
