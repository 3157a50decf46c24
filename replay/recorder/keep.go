package recorder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder/limits"
	"diagnose/replay/recorder/schedule"
	"diagnose/replay/recorder/sites"
)

// run is the directory of a run's recording, with those of its processes.
//
// While the program runs the directory has a hidden name (.NAME-0001-running). At the end it is
// renamed for how the program ended (NAME-0001-SIGSEGV), or removed.
type run struct {
	order      *order
	dir        string // absolute; it changes at the end
	name       string
	number     int
	random     [16]byte
	machine    record.Machine
	agent      func() (record.Agent, error)
	library    record.File
	recordings []*recording
	settled    bool
	// main is the index of the process that was started, mainOutcome how it ended; nil: it has
	// not.
	main        int
	mainOutcome *record.Outcome
	warn        func(text string)
	// tellAnalysis, unless nil, is called for an analysis that takes long.
	tellAnalysis func(sites.Analysis)
	madeOutput   bool // the directory for recordings did not exist before
	buildIDs     map[fileAt]string
	sums         map[fileAt]string // of sharedSum
	// memoryKills is the kernel's counter at the begin of the run.
	memoryKills uint64
}

func newRun(o *order) (*run, error) {
	r := &run{order: o, name: runName(record.Strings(o.Args), string(o.Path)), memoryKills: limits.MemoryKills()}
	if _, err := rand.Read(r.random[:]); err != nil {
		return nil, err
	}
	if o.Hunt != nil {
		r.random = schedule.Random
	}
	var err error
	if r.library, err = sites.StatFile(string(o.Library)); err != nil {
		return nil, fmt.Errorf("the library: %w", err)
	}
	if r.quiet() {
		return r, nil
	}
	r.machine = readMachine()
	// It takes as long as the program's start.
	r.agent = sync.OnceValues(func() (record.Agent, error) {
		sum, err := record.FileSum(string(o.Library))
		return record.Agent{Path: o.Library, SHA256: sum}, err
	})
	go r.agent()
	_, missing := os.Lstat(string(o.Output))
	if err := os.MkdirAll(string(o.Output), 0o700); err != nil {
		return nil, fmt.Errorf("recordings cannot be written: %w", err)
	}
	r.madeOutput = missing != nil
	for {
		if r.number, err = nextNumber(string(o.Output), r.name, r.number); err != nil {
			return nil, fmt.Errorf("recordings cannot be written: %w", err)
		}
		r.dir = filepath.Join(string(o.Output), fmt.Sprintf(".%s-%04d-running", r.name, r.number))
		err := os.Mkdir(r.dir, 0o700)
		if err == nil {
			r.spare()
			return r, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("recordings cannot be written: %w", err)
		}
	}
}

// spareName is a file that reserves disk space for the last manifests if the logs fill the
// disk.
const spareName, spareSize = ".spare", 256 << 10

func (r *run) spare() {
	f, err := os.OpenFile(filepath.Join(r.dir, spareName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	unix.Fallocate(int(f.Fd()), 0, 0, spareSize) // if it fails, only the reserve is missing
}

// drop removes the recording, and the directory for recordings if it was made for this one and
// is empty.
func (r *run) drop() error {
	for _, x := range r.recordings {
		x.later.cancel()
	}
	err := os.RemoveAll(r.dir)
	if r.madeOutput {
		os.Remove(string(r.order.Output))
	}
	return err
}

// runName makes a short name from a program's name that is harmless in a shell.
func runName(args []string, file string) string {
	name := filepath.Base(file)
	if len(args) > 0 && args[0] != "" {
		name = strings.TrimLeft(filepath.Base(args[0]), "-.")
	}
	const longest = 64
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '_' || r == '+' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
	if name = name[:min(len(name), longest)]; name == "" {
		return "program"
	}
	return name
}

var numbered = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.?(.*)-(\d{4,9})-[^/]*$`) })

// nextNumber returns a number larger than last and than all numbers in the directory for a
// name.
func nextNumber(dir, name string, last int) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if !strings.Contains(e.Name(), name) {
			continue
		}
		m := numbered().FindStringSubmatch(e.Name())
		if m == nil || m[1] != name {
			continue
		}
		if n, err := strconv.Atoi(m[2]); err == nil {
			last = max(last, n)
		}
	}
	return last + 1, nil
}

// family is the processes of the run that have ended.
func (r *run) family() *record.Family {
	f := &record.Family{}
	index := map[*recording]int{}
	if len(r.recordings) == 0 || r.recordings[0].manifest.PID != r.main {
		f.Processes = append(f.Processes, record.Process{PID: r.main, Parent: -1, Unrecorded: true})
	}
	for _, x := range r.recordings {
		parent := -1
		if x.parent != nil {
			parent = index[x.parent]
		}
		index[x] = f.AddProcess(&x.manifest, path.Join(".", x.dir), parent)
	}
	if r.mainOutcome != nil {
		f.Processes[0].Outcome = *r.mainOutcome
	}
	return f
}

// failure describes the failure of a run.
type failure struct {
	// name is the name of the run, why describes which process did what.
	name, why string
	// culprit is the directory, in that of the run, of the recording that shows the failure;
	// empty for the first.
	culprit string
	// others are the other processes that failed, in the order of their ends.
	others []FailedProcess
}

// failure describes the failure of the run so far; nil if it did not fail. A run without a
// recording fails as its program does.
func (r *run) failure() *failure {
	f := r.family()
	blamed := f.Blamed()
	if blamed < 0 {
		return nil
	}
	p := &f.Processes[blamed]
	o := &p.Outcome
	x := &failure{name: o.RunName(), why: "the program " + o.Deed(), culprit: p.Culprit()}
	if blamed > 0 {
		x.name, x.why = "child-"+o.RunName(), "its "+p.ChildName()+" "+o.Deed()
		if m := &f.Processes[0].Outcome; m.Failed() {
			x.why = "the program " + m.Deed() + ", and " + x.why
		}
	}
	for _, i := range f.Failed() {
		if i != 0 && i != blamed {
			p := &f.Processes[i]
			x.others = append(x.others, FailedProcess{PID: p.PID, Program: p.Program, Deed: p.Outcome.Deed(), Dir: p.Culprit(), Unrecorded: p.Unrecorded})
		}
	}
	return x
}

// quiet: the run keeps and writes nothing.
func (r *run) quiet() bool { return r.order.Hunt != nil && r.order.Hunt.Quiet }

// kept reports whether the recording is kept, as far as is known.
func (r *run) kept() bool { return r.order.All || r.failure() != nil }

// settle gives the recording its name, or removes it.
func (r *run) settle() error {
	if r.settled {
		return nil
	}
	r.settled = true
	if r.quiet() {
		return nil
	}
	failed := r.failure()
	if failed == nil && !r.order.All {
		return r.drop()
	}
	os.Remove(filepath.Join(r.dir, spareName))
	r.flush() // before the directory has another name
	ending := "passed"
	if failed != nil {
		ending = failed.name
	}
	for {
		final := filepath.Join(string(r.order.Output), fmt.Sprintf("%s-%04d-%s", r.name, r.number, ending))
		err := unix.Renameat2(unix.AT_FDCWD, r.dir, unix.AT_FDCWD, final, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) { // the file system has no such flag
			err = os.Rename(r.dir, final)
		}
		switch {
		case err == nil:
			r.dir = final
			return nil
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("record: the recording is gone: %w", err)
		case !errors.Is(err, os.ErrExist) && !errors.Is(err, unix.ENOTEMPTY):
			return fmt.Errorf("record: the recording stays in %s: %w", r.dir, err)
		}
		if r.number, err = nextNumber(string(r.order.Output), r.name, r.number); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
}

// finish is called at the end of the last process.
func (r *run) finish() error {
	err := r.settle()
	r.flush()
	return err
}

// abandon is called when a tracer failed. The recording stays, if there is one.
func (r *run) abandon() {
	r.flush()
	for _, x := range r.recordings {
		if !x.closed {
			x.manifest.Outcome = record.Outcome{Kind: record.OutcomeCut, Text: "the recorder failed"}
			x.store()
		}
	}
	if len(r.recordings) == 0 && !r.settled && !r.quiet() {
		r.drop()
	}
}

// recording is the recording of one process, from its start or fork to its exec or end.
type recording struct {
	run       *run
	parent    *recording
	dir       string // relative to the run's, with slashes
	children  int
	manifest  record.Manifest
	control   agentControl
	controlAt uint64
	memory    *ptrace.Memory  // of the process, while it is recorded
	text      sites.Addresses // of the library's code
	lock      *os.File        // tells readers that it is being written; nil: there is no lock
	patches   sites.Patches
	points    sites.Points         // of a hunt
	copied    map[record.Text]bool // files in a portable recording
	evidence  string
	misuse    uint64          // mismatched frees
	ending    *record.Outcome // how the process is about to end
	relocked  map[uint32]uint64
	asleep    map[uint32]evidence.Addr
	closed    bool
	cut       bool         // the engine ended it before the process did
	broken    bool         // could not be written; said once
	later     *later       // writes the manifest of a process that has just begun
	hunt      *record.Hunt // nil: the kernel schedules the process's threads
}

func (r *recording) path() string { return filepath.Join(r.run.dir, filepath.FromSlash(r.dir)) }

// open makes the directory of a process's recording.
func (r *run) open(p *process, forked bool) (*recording, error) {
	if r.quiet() {
		x := &recording{run: r, parent: p.from.recording}
		x.manifest.PID = p.pid
		r.recordings = append(r.recordings, x)
		return x, nil
	}
	library, err := r.agent()
	if err != nil {
		return nil, fmt.Errorf("the library: %w", err)
	}
	x := &recording{run: r, parent: p.from.recording, copied: map[record.Text]bool{}}
	x.manifest = record.Manifest{PID: p.pid, Producer: r.order.Producer, Agent: library, Machine: r.machine, Outcome: record.Outcome{Kind: record.OutcomeRunning}}
	if x.parent != nil {
		link := p.from.link
		x.manifest.Parent = &link
		x.parent.children++
		name := path.Join(record.ChildrenName, fmt.Sprintf("%d-%d", p.pid, x.parent.children))
		x.dir = path.Join(x.parent.dir, name)
		if err := os.Mkdir(x.path(), 0o700); errors.Is(err, os.ErrNotExist) { // the first child
			err = os.MkdirAll(x.path(), 0o700)
			if err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}
		x.parent.addChild(record.Child{Path: name, PID: p.pid, Thread: link.Thread, Ordinal: link.Ordinal, Exec: link.Exec})
		if forked {
			x.patches = x.parent.patches.Clone()
		}
	} else if len(r.recordings) > 0 {
		// An earlier program of the main process left no recording to be a child of. There is
		// only one directory for a recording without a parent.
		return nil, errors.New("it comes from a process that was not recorded")
	}
	f, err := os.OpenFile(filepath.Join(x.path(), record.LogName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	x.lock = lockDirectory(x.path())
	r.recordings = append(r.recordings, x)
	return x, nil
}

// addChild links a child. A parent that has ended is written again.
func (r *recording) addChild(c record.Child) {
	r.manifest.Children = append(r.manifest.Children, c)
	if r.closed {
		r.storeEnd()
	}
}

// addUnrecorded notes the end of a process that executed an unrecorded program.
func (r *recording) addUnrecorded(u record.Unrecorded) {
	now := time.Now().UTC()
	u.Ended = &now
	if len(r.manifest.Unrecorded) < record.MostUnrecorded {
		r.manifest.Unrecorded = append(r.manifest.Unrecorded, u)
	}
	if r.closed {
		r.store()
	}
}

// remove removes a recording that was not completed.
func (r *recording) remove() {
	if r.run.quiet() {
		r.run.recordings = r.run.recordings[:len(r.run.recordings)-1]
		return
	}
	r.lock.Close()
	if r.parent == nil {
		for _, name := range []string{record.LogName, record.DataName, record.SitesName, record.ManifestName} {
			os.Remove(filepath.Join(r.path(), name))
		}
	} else {
		os.RemoveAll(r.path())
		if n := len(r.parent.manifest.Children); n > 0 {
			r.parent.manifest.Children = r.parent.manifest.Children[:n-1]
		}
	}
	r.run.recordings = r.run.recordings[:len(r.run.recordings)-1]
}

// limit notes something that the recording cannot reproduce.
func (r *recording) limit(kind, text string) {
	for _, l := range r.manifest.Limits {
		if l.Kind == kind && l.Text == text {
			return
		}
	}
	r.manifest.Limits = append(r.manifest.Limits, eventlog.Limit{Kind: kind, Text: text})
	if r.closed {
		r.storeEnd()
	}
}

// storeEnd writes the manifest of a process that has ended. If the run may be dropped, settle
// does it.
func (r *recording) storeEnd() {
	if r.parent == nil && (r.run.order.All || !r.manifest.Outcome.Passed()) {
		r.store()
	} else {
		r.storeLater(endDelay)
	}
}

// store writes the manifest. A failure to write it does not disturb the program.
func (r *recording) store() {
	if r.run.quiet() {
		return
	}
	r.later.cancel()
	err := r.manifest.Write(r.path())
	if errors.Is(err, unix.ENOSPC) && os.Remove(filepath.Join(r.run.dir, spareName)) == nil {
		err = r.manifest.Write(r.path())
	}
	if err != nil && !r.broken {
		r.broken = true
		r.run.problem(err)
	}
}

// lockDirectory marks a recording as being written. The kernel removes the mark when the
// recorder ends, however that happens. Without locks there is no mark.
func lockDirectory(dir string) *os.File {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil
	}
	return f
}
