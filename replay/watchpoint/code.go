package watchpoint

import (
	"path/filepath"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// codeReader finds the instruction that made an access, the kind of access, and the caller on
// whose behalf it was made. The processor reports neither: a watchpoint traps after the
// instruction (Intel SDM volume 3, 18.2.4).
type codeReader struct {
	runtimes map[uint64]bool // what runtime has found out
	live     *tracee.Process
	// process has the objects that were loaded when a pc was in none of the known ones; nil: no pc
	// was looked up yet.
	process  *image.Process
	unwinder *unwind.Unwinder
	pcs      map[uint64]*stretch
	// nowhere are pcs outside of all objects that have been looked up already.
	nowhere map[uint64]bool
	// repeats has, by thread, the pc of an instruction of which the last access was a repetition.
	repeats map[uint32]uint64
}

// stretch is the code around a pc where a watchpoint trapped.
type stretch struct {
	// repeat is the instruction at the pc if it repeats itself: it may have trapped between two
	// repetitions.
	repeat *x86.Inst
	// before are the instructions that may have been executed last, the likeliest first.
	before []x86.Inst
}

func newCodeReader(p *tracee.Process) *codeReader {
	return &codeReader{live: p, pcs: map[uint64]*stretch{}, nowhere: map[uint64]bool{}, repeats: map[uint32]uint64{}}
}

func (r *codeReader) close() {
	if r.process != nil {
		r.process.Close()
	}
}

// explain fills in what the code tells about a hit, and returns the instruction; nil if it is not
// known. changed are the bits of the word that changed.
func (r *codeReader) explain(s *sighting, w *tracee.Watch, changed uint64, h *Hit) *x86.Inst {
	inst, kind := r.made(s, h.Watch)
	if inst == nil {
		inst, kind = r.instruction(s, w, changed)
	}
	h.Kind, h.PC, h.SP = kind, evidence.Addr(s.regs.Rip), evidence.Addr(s.regs.Rsp)
	if inst != nil {
		h.PC = evidence.Addr(inst.PC)
	}
	r.onBehalf(s, h)
	return inst
}

// made returns the instruction of a sighting and the kind of its access, if the back end knows them.
func (r *codeReader) made(s *sighting, watch int) (*x86.Inst, evidence.AccessCode) {
	if s.made == nil {
		return nil, evidence.CodeUnknown
	}
	if inst := r.live.MovedFrom(s.regs.Rip); inst != nil {
		return inst, s.made.kinds[watch]
	}
	return &s.made.inst, s.made.kinds[watch]
}

// onBehalf fills in on whose behalf an access was made.
func (r *codeReader) onBehalf(s *sighting, h *Hit) {
	regs := s.regs
	switch {
	case s.frame != nil:
		h.By = evidence.ByCall
		regs = tracee.UnderFrame(regs, s.frame)
		h.PC = evidence.Addr(regs.Rip)
		if s.frame.Kind == agent.EntrySyscall || s.frame.Kind == agent.EntryInsn {
			const syscall = 2
			regs.Rip = s.frame.R11
			h.PC = evidence.Addr(regs.Rip) - syscall
		}
		h.SP = evidence.Addr(regs.Rsp)
	case r.entry(s.regs.Rip):
		h.By = evidence.ByCall
	}
	h.Caller = r.caller(&regs, s.stack, h)
}

// entry reports whether a pc is in the entries and exits of the engine.
func (r *codeReader) entry(pc uint64) bool {
	if r.live.Control == 0 {
		return false
	}
	entries, err := r.live.Entries()
	return err == nil && entries.Has(pc)
}

// caller returns the innermost return address outside of the runtime's objects; 0 if regs are
// outside already, or the stack cannot be unwound.
func (r *codeReader) caller(regs *ptrace.Registers, stack image.Memory, h *Hit) evidence.Addr {
	m := r.module(regs.Rip)
	if !r.runtime(regs.Rip) {
		return 0
	}
	const mostFrames = 24
	own, inAgent := evidence.Addr(0), ours(m)
	var caller evidence.Addr
	r.unwinder.Visit(stack, tracee.ImageRegisters(regs), mostFrames, func(f *unwind.Frame) bool {
		if f.Trust.Guess() {
			return false // a guess is not reported
		}
		pc := f.LookupPC()
		m := r.module(uint64(pc))
		if m != nil && ours(m) {
			own = pc
		}
		if m == nil || r.runtime(uint64(pc)) {
			return true
		}
		caller = f.PC()
		return false
	})
	if inAgent && h.By == evidence.ByProgram && r.allocates(own) {
		h.By = evidence.ByHeap
	}
	return caller
}

// runtime reports whether code serves every program: a module of the runtime, or functions that
// are linked into a program built for points.
func (r *codeReader) runtime(pc uint64) bool {
	m := r.module(pc)
	if m == nil || image.RuntimeModule(m.Path) {
		return m != nil
	}
	known, found := r.runtimes[pc]
	if !found {
		s, named := r.process.SymbolAt(evidence.Addr(pc))
		known = named && strings.HasPrefix(s.Name, "__tsan_")
		if r.runtimes == nil || len(r.runtimes) == mostKnownCode {
			r.runtimes = map[uint64]bool{}
		}
		r.runtimes[pc] = known
	}
	return known
}

// ours reports whether a module is the recording library.
func ours(m *image.Module) bool {
	return strings.HasPrefix(filepath.Base(m.Path), strings.TrimSuffix(agent.RecordLibraryName, ".so"))
}

// allocates reports whether a function of our library belongs to the heap: it is one that the
// program calls, or an internal one.
func (r *codeReader) allocates(pc evidence.Addr) bool {
	s, found := r.process.SymbolAt(pc)
	if !found {
		return true
	}
	name, _, _ := strings.Cut(s.Name, ".")
	for _, prefix := range []string{"dg_mutex", "dg_lock", "dg_rw", "dg_spin", "dg_sem", "dg_cond", "dg_once", "dg_wake", "dg_thread"} {
		if strings.HasPrefix(name, prefix) {
			return false // of the locks
		}
	}
	return strings.HasPrefix(name, "dg_") || agent.HeapFunction(name) != ""
}

// module returns the object at a pc; nil for code outside of any.
func (r *codeReader) module(pc uint64) *image.Module {
	if r.process != nil {
		if m := r.process.ModuleAt(evidence.Addr(pc)); m != nil {
			return m
		}
		if r.nowhere[pc] {
			return nil
		}
	}
	r.nowhere[pc] = true
	r.reopen()
	if r.process == nil {
		return nil
	}
	return r.process.ModuleAt(evidence.Addr(pc))
}

// reopen reads which objects are loaded now.
func (r *codeReader) reopen() {
	regs := make([]byte, userRegisters)
	p, err := image.OpenTraced(image.Traced{PID: r.live.PID, Failing: -1, Threads: []image.TracedThread{{TID: r.live.PID, General: regs}}}, r.live.ImageOptions)
	if err != nil {
		return // as before: accesses have their pcs at least
	}
	r.close()
	r.process, r.unwinder = p, unwind.New(p)
}

// copied returns the word as it will be after the engine has copied the remaining bytes: a system
// call has one result.
func (r *codeReader) copied(s *sighting, w *tracee.Watch, now uint64) uint64 {
	x := r.stretch(s.regs.Rip)
	if x.repeat == nil || x.repeat.Op != "movsb" {
		return now
	}
	for b := range uint64(w.Size) {
		at := uint64(w.Addr) + b - s.regs.Rdi
		if at >= s.regs.Rcx {
			continue
		}
		var p [1]byte
		if _, err := r.live.Memory.ReadAt(p[:], int64(s.regs.Rsi+at)); err != nil {
			return now
		}
		now = now&^(0xff<<(8*b)) | uint64(p[0])<<(8*b)
	}
	return now
}

// userRegisters is sizeof(struct user_regs_struct).
const userRegisters = 27 * 8
