package record

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// Process is one process of a recorded run, from its start or fork to its end,
// whatever programs it executed.
type Process struct {
	PID int
	// Parent is the index in Family.Processes of the process that created this one; -1 for the
	// first.
	Parent int
	// Program is the last executable of the process; empty if it is not known.
	Program Text
	// Dir is the recording of its last program, relative to the first process's, with slashes;
	// "." is that of the first process. Unrecorded: that recording ends before the process
	// does, because the program that it executed then was not recorded.
	Dir        string
	Unrecorded bool
	// Outcome is how the process ended, even if its recording was cut off before that.
	Outcome Outcome
	// Ended is nil if the process was not seen to end.
	Ended *time.Time
}

// Family is the processes of a run, parents before their children. The first is the process
// that was started.
type Family struct {
	Processes []Process
	// Unread is why some recordings of children are left out; nil: none is left out.
	Unread error
}

// mostProcesses is the maximum number of processes that are read: the kernel's usual limit.
const mostProcesses = 1 << 15

// ReadFamily reads the manifests of a recording and of those of its child processes.
func ReadFamily(rec *Recording) *Family {
	f := &Family{}
	f.read(rec, ".", -1)
	return f
}

func (f *Family) read(rec *Recording, dir string, parent int) {
	at := f.AddProcess(rec.Manifest, dir, parent)
	for _, link := range rec.Manifest.Children {
		if f.full() {
			return
		}
		child, err := rec.manifestOf(link)
		if err != nil {
			f.Unread = err
			continue
		}
		f.read(child, path.Join(dir, link.Path), at)
	}
}

// full reports whether the limit is reached. It adds the error once.
func (f *Family) full() bool {
	if len(f.Processes) < mostProcesses {
		return false
	}
	if !errors.Is(f.Unread, errTooMany) {
		f.Unread = errors.Join(f.Unread, errTooMany)
	}
	return true
}

var errTooMany = fmt.Errorf("record: the run has more than %d processes", mostProcesses)

// manifestOf is Child without the child's log.
func (r *Recording) manifestOf(c Child) (*Recording, error) {
	if err := r.CheckChild(c.Path); err != nil {
		return nil, err
	}
	dir := filepath.Join(r.Dir, filepath.FromSlash(c.Path))
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	return &Recording{Dir: dir, Manifest: m}, nil
}

// addProcess adds a recording and returns the index of its process.
func (f *Family) AddProcess(m *Manifest, dir string, parent int) int {
	p := Process{PID: m.PID, Parent: parent, Program: m.Program.Path, Dir: dir, Outcome: *m.Outcome.final(), Ended: m.Times.Ended}
	at := len(f.Processes)
	if parent >= 0 && m.Parent != nil && m.Parent.Exec && f.Processes[parent].PID == m.PID {
		at = parent
		p.Parent = f.Processes[at].Parent
		f.Processes[at] = p
	} else {
		f.Processes = append(f.Processes, p)
	}
	for i := range m.Unrecorded {
		f.addUnrecorded(&m.Unrecorded[i], at)
	}
	return at
}

func (f *Family) addUnrecorded(u *Unrecorded, parent int) {
	p := Process{PID: u.PID, Parent: parent, Program: u.Program, Unrecorded: true, Outcome: u.Outcome, Ended: u.Ended}
	if of := &f.Processes[parent]; of.PID == u.PID {
		p.Parent, p.Dir = of.Parent, of.Dir
		*of = p
		return
	}
	if f.full() {
		return
	}
	f.Processes = append(f.Processes, p)
}

// Blamed returns the index of the process whose failure explains the failure of the run; -1 if
// no process failed. A crash explains a status. If several processes crashed, it is the process
// whose signal the status of the first process passes on, as in shells; otherwise it is the
// process that ended first. A crash of the first process explains itself, unless it sent itself
// the signal that a descendant died of.
func (f *Family) Blamed() int {
	if len(f.Processes) == 0 {
		return -1
	}
	crashed := f.crashed()
	main := &f.Processes[0].Outcome
	switch {
	case slices.Contains(crashed, 0):
		return 0
	case len(crashed) == 0 && main.Failed():
		return 0
	case len(crashed) == 0:
		return -1
	}
	for _, i := range slices.Backward(crashed) {
		if o := &f.Processes[i].Outcome; o.Kind == OutcomeSignal && main.Kind == OutcomeExit && main.Status == shellSignal+o.Signal {
			return i
		}
	}
	return crashed[0]
}

// shellSignal is the number that a shell adds to the number of the signal that ended a command
// (POSIX, Shell Command Language, 2.8.2).
const shellSignal = 128

// crashed returns the indexes of the processes that crashed, in the order of their ends.
func (f *Family) crashed() []int {
	var list []int
	passedOn := f.passedOn()
	for i := range f.Processes {
		if f.Processes[i].Outcome.Crashed() && !passedOn[i] {
			list = append(list, i)
		}
	}
	f.sortByEnd(list)
	return list
}

func (f *Family) sortByEnd(list []int) {
	slices.SortStableFunc(list, func(a, b int) int {
		x, y := f.Processes[a].Ended, f.Processes[b].Ended
		if x == nil || y == nil {
			return cmp.Compare(a, b)
		}
		return x.Compare(*y)
	})
}

// passedOn returns the indexes of the processes that sent themselves the signal that a
// descendant had died of, as timeout(1) does.
func (f *Family) passedOn() map[int]bool {
	found, signals := map[int]bool{}, map[int]bool{}
	for i := range f.Processes {
		if p := &f.Processes[i]; p.sentItself() {
			signals[p.Outcome.Signal] = true
		}
	}
	for s := range signals {
		f.passedOnSignal(s, found)
	}
	return found
}

// passedOnSignal adds the processes for one signal. Processes come after their parents.
func (f *Family) passedOnSignal(signal int, found map[int]bool) {
	first := make([]*time.Time, len(f.Processes)) // when a descendant first died of the signal
	for i, p := range slices.Backward(f.Processes) {
		earliest := first[i]
		if p.Outcome.Kind == OutcomeSignal && p.Outcome.Signal == signal && p.Ended != nil {
			if p.sentItself() && earliest != nil && earliest.Before(*p.Ended) {
				found[i] = true
			}
			earliest = earlier(earliest, p.Ended)
		}
		if p.Parent >= 0 {
			first[p.Parent] = earlier(first[p.Parent], earliest)
		}
	}
}

// earlier returns the earlier of two times. Each may be unknown.
func earlier(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

func (p *Process) sentItself() bool {
	return p.Outcome.Kind == OutcomeSignal && p.Outcome.Sender == p.PID
}

// Failed returns the indexes of all processes that crashed, in the order of their ends. If the
// first process failed, it also returns those that ended with a status other than 0 or by a
// signal. If the first process passed, such ends are usual: scripts test for files, and stop
// what they started.
func (f *Family) Failed() []int {
	if len(f.Processes) == 0 {
		return nil
	}
	all := f.Processes[0].Outcome.Failed()
	var list []int
	for i := range f.Processes {
		if o := &f.Processes[i].Outcome; o.Crashed() || all && o.Failed() {
			list = append(list, i)
		}
	}
	f.sortByEnd(list)
	return list
}

func (p *Process) Culprit() string {
	if p.Dir == "." {
		return ""
	}
	return p.Dir
}

// child names a child process: "child process 4711 (sort)".
func (p *Process) ChildName() string {
	if p.Program == "" {
		return fmt.Sprintf("child process %d", p.PID)
	}
	return fmt.Sprintf("child process %d (%s)", p.PID, path.Base(string(p.Program)))
}
