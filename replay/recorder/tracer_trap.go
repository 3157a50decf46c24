package recorder

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder/limits"
	"diagnose/replay/recorder/sites"
	"diagnose/replay/recorder/started"
)

// trapped answers a question of the engine (enum dg_trap of record.h). It arrives as an int3,
// with the pc after it.
func (t *tracer) trapped(x *tracee, regs *ptrace.Registers) error {
	p := x.process
	switch regs.Rax {
	case agent.TrapHello, agent.TrapForked:
		answer := uint64(1)
		if err := t.hello(x, regs); err != nil {
			t.link.warn("process %d is not recorded: %v", p.pid, limits.WithFileSize(err))
			p.from.refused = true
			answer = 0
		}
		return x.answer(regs, answer)
	case agent.TrapObjects:
		count := uint64(0)
		if r := p.recording; r != nil {
			if err := r.objects(x); err != nil {
				t.link.warn("process %d: %v", p.pid, err)
				r.limit("site", err.Error())
			}
			count = uint64(r.patches.Count)
		}
		return x.answer(regs, count)
	case agent.TrapExit:
		return t.exits(x, regs)
	case agent.TrapReady:
		return t.ready(x, regs)
	case agent.TrapTraced:
		return t.traced(x, regs)
	case agent.TrapRefused:
		return t.refused(x, regs)
	case agent.TrapShared:
		return t.shared(x, regs)
	case agent.TrapStuck:
		if p.recording != nil && p.recording.hunt != nil {
			return t.stuck(x, regs)
		}
	}
	return x.answer(regs, 0)
}

// hello begins a process's recording.
func (t *tracer) hello(x *tracee, regs *ptrace.Registers) error {
	p := x.process
	if p.recording != nil {
		return fmt.Errorf("its library was started twice")
	}
	at := regs.Rdi
	if at == 0 {
		return fmt.Errorf("it uses addresses from %#x on, which recording needs", uint64(agent.EngineControl))
	}
	memory, err := ptrace.OpenMemory(p.pid)
	if err != nil {
		return err
	}
	defer func() {
		if p.recording == nil {
			memory.Close()
		}
	}()
	control, err := readControl(memory, at)
	if err != nil {
		return err
	}
	r, err := t.run.open(p, regs.Rax == agent.TrapForked)
	if err != nil {
		return err
	}
	r.control, r.controlAt, r.memory = control, at, memory
	r.patches.Count = control.PatchCount
	// The process is stopped: these mappings are valid until introduce returns.
	maps, err := sites.Mappings(p.pid)
	if err != nil {
		return err
	}
	if regs.Rax == agent.TrapForked {
		r.text = r.parent.text
	} else {
		r.text = libraryText(maps, control.TextLow)
	}
	if err := t.introduce(x, r, memory, maps, regs.Rax == agent.TrapForked); err != nil {
		r.remove()
		return err
	}
	p.recording = r
	return nil
}

// introduce fills the control page of a process, and the recording's data about its start.
func (t *tracer) introduce(x *tracee, r *recording, memory *ptrace.Memory, maps []record.Mapping, forked bool) error {
	c := &r.control
	if !forked {
		r.patches.Count, c.PatchesDone = 0, 0
		if err := r.addPatches(x.tid, memory, maps); err != nil {
			return err
		}
	}
	c.PatchCount = r.patches.Count
	begin := r.begin
	if forked {
		begin = r.beginForked
	}
	if err := begin(x.process.pid, maps); err != nil {
		return err
	}
	if r.run.quiet() {
		c.Stopped = agent.LimitStart // nothing is logged
	}
	log, data := filepath.Join(r.path(), record.LogName), filepath.Join(r.path(), record.DataName)
	if len(log) >= len(c.LogPath) || len(data) >= len(c.DataPath) {
		return fmt.Errorf("the path of its recording is too long: %s", log)
	}
	c.Mode, c.PID, c.Tracer = agent.ModeRecord, uint32(x.process.pid), uint32(unix.Getpid())
	c.LogLimit = uint64(t.order.MaxSize)
	c.KeepOutput = 0
	if t.order.KeepOutput {
		c.KeepOutput = 1
	}
	clear(c.LogPath[:])
	clear(c.DataPath[:])
	copy(c.LogPath[:], log)
	copy(c.DataPath[:], data)
	if !forked {
		c.Patches = agent.EngineSites
		if t.order.Hunt == nil {
			c.ClockPC = started.Clock(maps, memory)
		}
	}
	if err := r.beginHunt(x.tid, memory, forked); err != nil {
		return err
	}
	return writeControl(memory, r.controlAt, c)
}

// objects appends the system calls of newly loaded objects to the table.
func (r *recording) objects(x *tracee) error {
	memory, err := ptrace.OpenMemory(x.tid)
	if err != nil {
		return err
	}
	defer memory.Close()
	maps, err := sites.Mappings(x.tid)
	if err != nil {
		return err
	}
	// Threads other than the asker may change the page meanwhile.
	if err := r.addPatches(x.tid, memory, maps); err != nil {
		return err
	}
	if err := r.addPoints(x.tid, memory); err != nil {
		return err
	}
	count := binary.LittleEndian.AppendUint32(nil, r.patches.Count)
	if _, err := memory.WriteAt(count, int64(r.controlAt+uint64(unsafe.Offsetof(r.control.PatchCount)))); err != nil {
		return err
	}
	r.copyObjects(x.process.pid)
	return nil
}

// exits handles a process that is about to exit.
func (t *tracer) exits(x *tracee, regs *ptrace.Registers) error {
	r := x.process.recording
	if r == nil {
		return x.answer(regs, 0)
	}
	status := int(regs.Rdi) & 0xff
	r.noteHunted()
	r.noteTurns()
	r.takeEvidence()
	if status == 0 && r.evidence == "" && !t.order.All {
		r.checkStopped(x.process.pid)
		r.exiting(x, status)
		return x.answer(regs, 0)
	}
	if r.run.quiet() {
		r.exiting(x, status)
		return x.answer(regs, 0)
	}
	return t.stopAll(x, func() error {
		r.endsLast(x)
		r.checkStopped(x.process.pid)
		r.noteUnsettled(x.process)
		r.exiting(x, status)
		r.writeCore(x, 0, nil)
		return x.answer(regs, 0)
	})
}

// addPatches intercepts the system calls of code that the process has mapped.
func (r *recording) addPatches(tid int, memory *ptrace.Memory, list []record.Mapping) error {
	how := sites.Patching{Library: r.run.library, Tell: r.run.tellAnalysis, Atomics: r.run.order.Atomics}
	if !r.run.quiet() {
		how.File = filepath.Join(r.path(), record.SitesName)
	}
	limits, err := r.patches.Add(tid, memory, list, how)
	r.limits(limits)
	if r.run.order.Atomics {
		r.manifest.Atomics = &record.Atomics{Objects: r.patches.Atomics}
	}
	return err
}

// addPoints adds the points of a hunt to code that the process has mapped.
func (r *recording) addPoints(tid int, memory *ptrace.Memory) error {
	limits, err := r.points.Add(tid, memory, r.run.library)
	r.limits(limits)
	return err
}

func (r *recording) limits(list []eventlog.Limit) {
	for _, l := range list {
		r.limit(l.Kind, l.Text)
	}
}

func readControl(memory *ptrace.Memory, at uint64) (agent.RawControl, error) {
	var c agent.RawControl
	if _, err := memory.ReadAt(controlBytes(&c), int64(at)); err != nil {
		return c, fmt.Errorf("its control page: %w", err)
	}
	if c.Magic != agent.RecordMagic || c.Version != agent.RecordVersion {
		return c, fmt.Errorf("its library is another version than this tool: use the one that belongs to it")
	}
	return c, nil
}

func writeControl(memory *ptrace.Memory, at uint64, c *agent.RawControl) error {
	_, err := memory.WriteAt(controlBytes(c), int64(at))
	return err
}

// controlBytes is a control page in the layout of this machine's processes.
func controlBytes(c *agent.RawControl) []byte {
	return (*[unsafe.Sizeof(*c)]byte)(unsafe.Pointer(c))[:]
}

// ancestor is the origin of a process.
type ancestor struct {
	recording *recording // nil: none
	link      record.Parent
	untraced  string // why the process is not traced any more
	refused   bool   // it has no recording, and the user knows why
}

// ancestorOf returns the origin of a child of thread x, which is in the stop of its fork.
func (p *process) ancestorOf(x *tracee) *ancestor {
	r := p.recording
	if r == nil {
		a := *p.from
		return &a
	}
	index, ordinal := r.place(x.tid)
	if index != 0 {
		ordinal++ // the fork's own event is not written yet
	}
	return &ancestor{recording: r, link: record.Parent{PID: p.pid, Thread: index, Ordinal: ordinal}}
}

// place is the engine's index of a thread, and the ordinal of its last event; 0, 0 if the
// engine does not know the thread.
func (r *recording) place(tid int) (index uint32, ordinal uint64) {
	r.eachThread(func(i uint32, raw *agent.RawRThread) bool {
		if raw.RealTID != uint32(tid) || raw.State == agent.REnded {
			return true
		}
		index, ordinal = i, raw.Ordinal
		return false
	})
	return index, ordinal
}

// noteRelocked notes what a replay must know about an end without a core. Threads that still
// run may take more mutexes meanwhile. The replay does not reach those.
func (r *recording) noteRelocked(x *tracee) {
	r.relocked, r.asleep = map[uint32]uint64{}, map[uint32]evidence.Addr{}
	words := sleepers(x)
	r.eachThread(func(i uint32, raw *agent.RawRThread) bool {
		if raw.State != agent.REnded {
			r.relocked[i] = raw.Relocked()
			if word := words[int(raw.RealTID)]; word != 0 {
				r.asleep[i] = word
			}
		}
		return true
	})
}

// eachThread calls show with the engine's data of each thread, until show returns false.
func (r *recording) eachThread(show func(index uint32, raw *agent.RawRThread) bool) {
	c, err := readControl(r.memory, r.controlAt)
	if err != nil {
		return
	}
	for i := uint32(1); i <= min(c.Threads, agent.RThreads-1); i++ {
		var raw agent.RawRThread // in the layout of this machine
		bytes := (*[unsafe.Sizeof(raw)]byte)(unsafe.Pointer(&raw))
		if _, err := r.memory.ReadAt(bytes[:], int64(agent.RThreadAddress(i))); err == nil && !show(i, &raw) {
			return
		}
	}
}
