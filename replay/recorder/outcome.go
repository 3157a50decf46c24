package recorder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/siginfo"
	"diagnose/replay/corefile"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder/limits"
	"diagnose/replay/recorder/started"
)

type agentControl = agent.RawControl

// begin writes the manifest of a process whose recording starts.
func (r *recording) begin(pid int, maps []record.Mapping) error {
	if r.run.quiet() {
		return nil
	}
	var err error
	m := &r.manifest
	if m.Program, err = readProgram(pid); err != nil {
		return err
	}
	m.Start = record.Start{Random: hexOf(r.run.random), TID: pid}
	if m.Start.Auxv, err = readAuxv(pid); err != nil {
		return err
	}
	m.Start.Mappings = maps
	r.run.identify(m.Start.Mappings)
	if err := r.saveStart(pid); err != nil {
		return err
	}
	m.Times.Started = time.Now().UTC()
	r.copyObjects(pid)
	if r.parent != nil {
		r.storeLater(beginDelay)
		return nil
	}
	return m.WriteShort(r.path())
}

// beginForked is begin for the child of a fork. The child executes the parent's program, and
// its replay begins with the parent's. So there is nothing else to save of its start.
func (r *recording) beginForked(pid int, maps []record.Mapping) error {
	if r.run.quiet() {
		return nil
	}
	m := &r.manifest
	m.Program = r.parent.manifest.Program
	if err := readInherited(&m.Program, pid); err != nil {
		return err
	}
	m.Start = r.parent.manifest.Start
	m.Start.TID = pid
	m.Start.Mappings = maps
	r.run.identify(m.Start.Mappings)
	m.Times.Started = time.Now().UTC()
	r.copyObjects(pid)
	r.storeLater(beginDelay)
	return nil
}

// faultAddress: the faults of signal(7) have an address in their siginfo_t.
func faultAddress(s syscall.Signal, info *ptrace.Siginfo) *evidence.Addr {
	switch s {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP:
		if code := info.Code(); code > 0 && code != siginfo.Kernel {
			addr := evidence.Addr(binary.LittleEndian.Uint64(info[16:]))
			return &addr
		}
	}
	return nil
}

// failed notes the signal that thread x is about to die of.
func (r *recording) failed(x *tracee, s syscall.Signal, info *ptrace.Siginfo) {
	o := &record.Outcome{Kind: record.OutcomeSignal, Signal: int(s), TID: x.tid, FaultAddr: faultAddress(s, info)}
	if info != nil {
		o.Sender = sender(info)
	}
	o.Thread, _ = r.place(x.tid)
	if regs, err := ptrace.GetRegisters(x.tid); err == nil {
		pc := evidence.Addr(regs.Rip)
		o.PC = &pc
	}
	r.ending = o
}

// exiting notes that thread x ends the process.
func (r *recording) exiting(x *tracee, status int) {
	o := &record.Outcome{Kind: record.OutcomePassed, Status: status, TID: x.tid}
	if status != 0 {
		o.Kind = record.OutcomeExit
	}
	o.Thread, _ = r.place(x.tid)
	r.ending = o
}

// takeEvidence asks the agent's heap whether it found anything.
func (r *recording) takeEvidence() {
	heap, err := agent.Open(asImage{r.memory}, 0)
	if err != nil {
		if !errors.Is(err, agent.ErrAbsent) {
			r.limit("heap", err.Error())
		}
		return
	}
	r.misuse = heap.Root().Mismatches
	n, err := corruptions(heap)
	switch {
	case err != nil:
		r.limit("heap", err.Error())
	case n == 1:
		r.evidence = "1 corruption of the heap was found"
	case n > 1:
		r.evidence = fmt.Sprintf("%d corruptions of the heap were found", n)
	}
}

// corruptions counts the agent's findings, less the mismatched frees that the process survived:
// without the agent they would have done no harm.
func corruptions(heap *agent.Heap) (int, error) {
	list, more, err := heap.Errors()
	n := more
	for i := range list {
		if list[i].Kind != agent.ErrorMismatch || list[i].Fatal {
			n++
		}
	}
	return n, err
}

// asImage is a process's memory for the readers of heaps.
type asImage struct{ memory *ptrace.Memory }

func (m asImage) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	return m.memory.ReadAt(p, int64(addr))
}

// outcome returns how a process ended, with the details noted before the end if its
// status agrees.
func (p *process) outcome(status syscall.WaitStatus) record.Outcome {
	o := record.Outcome{Kind: record.OutcomePassed}
	switch {
	case status.Signaled():
		o = record.Outcome{Kind: record.OutcomeSignal, Signal: int(status.Signal())}
	case status.ExitStatus() != 0:
		o = record.Outcome{Kind: record.OutcomeExit, Status: status.ExitStatus()}
	}
	r := p.recording
	if r == nil {
		return o
	}
	if e := r.ending; e != nil && (e.Stuck != "" || e.Kind == o.Kind && e.Signal == o.Signal && e.Status == o.Status) {
		o = *e
	}
	o.Evidence, o.Mismatched, o.MemoryKills = r.evidence, r.misuse, r.run.killedMeanwhile(&o)
	if o.Kind == record.OutcomeSignal {
		o.Relocked, o.Asleep = r.relocked, r.asleep
	}
	return o
}

// close completes a recording.
func (r *recording) close(o record.Outcome, usage syscall.Rusage) {
	m := &r.manifest
	m.Outcome = o
	now := time.Now().UTC()
	m.Times.Ended = &now
	m.Times.UserNS, m.Times.SystemNS = usage.Utime.Nano(), usage.Stime.Nano()
	if r.run.quiet() {
		r.closed = true
		r.memory.Close()
		return
	}
	m.Sizes = record.Sizes{Log: r.size(record.LogName), Data: r.size(record.DataName), Core: r.size(record.CoreName)}
	if !r.cut && r.empty() {
		r.cut = true
		r.limit("disk", "nothing was recorded: the library could not write the log")
	}
	if inRecorder(&o) {
		text := fmt.Sprintf("the access that failed was to memory of the recorder's own, at %v: unless the program made that address itself, the recorder failed, and not the program", *o.FaultAddr)
		r.limit("recorder", text)
		r.run.problem(errors.New(text))
	}
	if r.cut {
		m.Outcome = record.Outcome{Kind: record.OutcomeCut, Text: "not all was recorded; " + o.Ending(), Cut: &o}
	}
	r.closed = true
	r.memory.Close()
	r.storeEnd()
	r.lock.Close()
}

// inRecorder reports whether a process died of an access to the engine's own memory, in which only the stacks are the program's.
func inRecorder(o *record.Outcome) bool {
	return o.Kind == record.OutcomeSignal && o.FaultAddr != nil && *o.FaultAddr >= agent.EngineBase && *o.FaultAddr < agent.EngineStacks
}

// empty: a log without events has only the first extent, the header.
func (r *recording) empty() bool { return r.manifest.Sizes.Log <= agent.ExtentSize }

// whyStopped says why the engine of a process ended its recording before the process ended.
func whyStopped(k eventlog.LimitKind, pid int) string {
	switch k {
	case eventlog.LimitFiles:
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
			return "the process's limit on the size of files (RLIMIT_FSIZE, 'ulimit -f') has no room for its log"
		}
		return "its log reached a limit of the process: " + limits.FileSizeText(limit.Cur)
	case eventlog.LimitSize:
		return "its log has the size that --max-size allows, or all that a log can have"
	case eventlog.LimitDisk:
		return "there was no more room for it"
	case eventlog.LimitPlace:
		return "a signal arrived in the recorder's own code, where no replay would find its place"
	case eventlog.LimitStart:
		return "the library could not write its log, or had no memory"
	}
	return "the library says: " + k.String()
}

// checkStopped notes whether the engine had to end the recording. Later events are not part of
// it.
func (r *recording) checkStopped(pid int) {
	if r.run.quiet() {
		return // from the start
	}
	c, err := readControl(r.memory, r.controlAt)
	if err != nil || c.Stopped == 0 {
		return
	}
	r.cut = true
	kind := eventlog.LimitKind(c.Stopped)
	why := whyStopped(kind, pid)
	r.limit(kind.String(), "the recording ended early: "+why)
	r.run.problem(fmt.Errorf("the recording ended early, for %s: what process %d did afterwards is missing", why, pid))
}

func (r *recording) size(name string) int64 {
	info, err := os.Stat(filepath.Join(r.path(), name))
	if err != nil {
		return 0
	}
	return info.Size()
}

// mainEnded tells the launcher, which waits only for the program.
func (t *tracer) mainEnded(status syscall.WaitStatus, outcome record.Outcome) error {
	r := t.run
	pid := t.tracees.main.pid
	r.mainOutcome = &outcome
	if len(r.recordings) == 0 {
		why := t.tracees.main.from.untraced
		if why == "" {
			why = "the library was not loaded into it"
		}
		if !t.tracees.main.from.refused {
			t.link.warn("nothing was recorded: %s", why)
		}
		r.settled = true
		if !r.quiet() {
			os.RemoveAll(r.dir)
		}
	} else {
		if len(t.tracees.processes) == 0 || r.kept() {
			awaitOpening(t.tracees.processes)
			if err := r.settle(); err != nil {
				r.problem(err)
			}
		}
	}
	result := Result{PID: pid, Status: status, Outcome: outcome, Running: len(t.tracees.processes)}
	if f := r.failure(); f != nil {
		result.Failed, result.Why, result.Culprit, result.Others = true, f.why, f.culprit, f.others
	}
	for _, x := range r.recordings {
		if h := x.manifest.Hunt; h != nil && x.manifest.PID == pid {
			result.Hunted = &h.Hunted
		}
		if x.closed && x.dir == result.Culprit && !r.quiet() {
			result.Cut, result.Empty, result.Refused = x.cut, x.empty(), x.manifest.Refused
		}
	}
	if r.quiet() {
		t.link.tell(notice{Ended: &result})
		return nil
	}
	dir := r.dir
	// A removed directory may exist again, with files that were written late.
	culprit := filepath.Join(dir, filepath.FromSlash(result.Culprit))
	if _, err := os.Stat(filepath.Join(culprit, record.LogName)); err != nil {
		result.Empty = true
		if _, err := os.Stat(culprit); err != nil {
			dir = ""
		}
	}
	t.link.tell(notice{Ended: &result, Dir: record.Text(dir)})
	return nil
}

// longestOpening is how long the name of a run waits for a process to open its files. A busy
// machine may need that long. A process that was stopped before that, by a signal or a user,
// would never open them.
const longestOpening = 10 * time.Second

// awaitOpening waits for processes that were told where their files are and have not opened
// them. When the run gets its name the files move.
func awaitOpening(processes map[int]*process) {
	for until := time.Now().Add(longestOpening); opening(processes) && time.Now().Before(until); {
		time.Sleep(100 * time.Microsecond)
	}
}

func opening(processes map[int]*process) bool {
	for _, p := range processes {
		if p.recording != nil && p.recording.opening() {
			return true
		}
	}
	return false
}

// opening: a process that has ended, or continues without a recording, opens nothing.
func (r *recording) opening() bool {
	if r.run.quiet() {
		return false
	}
	c, err := readControl(r.memory, r.controlAt)
	return err == nil && c.Mode == agent.ModeRecord && c.Stopped == 0 && c.LogFD < 0
}

// problem warns the user of a defect in the recording. The program is not affected.
func (r *run) problem(err error) {
	if r.warn != nil {
		r.warn(limits.WithFileSize(err).Error())
	}
}

// writeCore writes a core of the process in its present state. The thread that ends it is
// first.
func (r *recording) writeCore(x *tracee, signal int, info *ptrace.Siginfo) {
	if r.cut || r.run.quiet() {
		return // a replay's end is compared with the core
	}
	threads := []corefile.CoreThread{{TID: x.tid, Signal: signal, Info: (*[128]byte)(info)}}
	for _, other := range x.process.threads {
		if other != x && other.stopped {
			threads = append(threads, corefile.CoreThread{TID: other.tid})
		}
	}
	if err := r.points.Hide(); err != nil {
		r.limit("core", err.Error())
	}
	f, err := os.OpenFile(filepath.Join(r.path(), record.CoreName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		r.run.problem(fmt.Errorf("the core of process %d: %w", x.process.pid, err))
		return
	}
	defer f.Close()
	written, err := corefile.WriteCore(f, corefile.CoreOptions{PID: x.process.pid, Threads: threads, Source: asRegsets{},
		Skip: []corefile.Range{{Start: agent.EngineLog, End: agent.EngineStacks}}, Omit: r.points.Stubs()})
	if err != nil {
		os.Remove(f.Name()) // a partial core must not be compared with an end
		r.limit("core", limits.WithFileSize(err).Error())
		r.run.problem(fmt.Errorf("the core of process %d: %w", x.process.pid, err))
		return
	}
	for _, m := range written.Missing {
		r.limit("core", fmt.Sprintf("memory from %v to %v is not in the core: %v", m.Start, m.End, m.Err))
	}
}

// saveStart writes what the dynamic linker had before the engine: the pages that differ from its
// file, and its cache.
func (r *recording) saveStart(pid int) error {
	pages, err := started.Pages(pid, &r.manifest.Start)
	if err != nil {
		return fmt.Errorf("the dynamic linker's memory: %w", err)
	}
	var b bytes.Buffer
	for i := range pages {
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(pages[i].Addr)))
		b.Write(pages[i].Data[:])
	}
	r.manifest.StartFile = record.Stored(b.Bytes())
	if err := os.WriteFile(filepath.Join(r.path(), record.StartName), b.Bytes(), 0o600); err != nil {
		return err
	}
	cache, err := started.LinkerCache(pid)
	if err != nil { // a replay needs the same cache in its place then
		r.limit("linker-cache", fmt.Sprintf("the dynamic linker's cache was not kept: %v", err))
		return nil
	}
	r.manifest.LinkerCache = record.Stored(cache)
	if len(cache) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(r.path(), record.LinkerCacheName), cache, 0o600)
}

// killedMeanwhile is how many processes the kernel killed for lack of memory since the run
// began, if a process of the run died of SIGKILL. The kernel does not say which processes it
// killed.
func (r *run) killedMeanwhile(o *record.Outcome) uint64 {
	if o.Kind != record.OutcomeSignal || syscall.Signal(o.Signal) != unix.SIGKILL {
		return 0
	}
	return limits.MemoryKills() - r.memoryKills
}
