package image

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
	"diagnose/internal/wording"
)

// coreReader fills a process with what a core shows of it.
type coreReader struct {
	core    *elfCore
	notes   *coreNotes
	process *Process
}

// setThreads converts the threads. gdb's gcore writes a siginfo for each
// thread, with signal 0 if there was none.
func (r *coreReader) setThreads() {
	r.process.Threads = make([]Thread, len(r.notes.threads))
	numbers := threadNumbers(r.notes)
	for i, t := range r.notes.threads {
		ref := evidence.ThreadRef{Number: numbers[i], TID: t.tid}
		if t.tid == r.notes.pid {
			ref.Name = r.notes.name
		}
		signal := t.siginfo
		if signal != nil && signal.Number == 0 {
			signal = nil
		}
		r.process.Threads[i] = Thread{Ref: ref, Registers: t.regs, Signal: signal}
	}
	r.process.Program.Threads = len(r.process.Threads)
	if r.process.Program.PID == 0 {
		r.process.Program.PID = r.notes.threads[0].tid
	}
	if first := &r.notes.threads[0]; first.siginfo == nil && first.cursig != 0 {
		s := siginfo.Signal(first.cursig)
		r.process.Threads[0].Signal = &s
	}
}

// findFailing picks the thread that got the fatal signal. The kernel writes the
// signal's number into pr_cursig of every thread, but a siginfo only for the
// first thread, which is the failing one (fs/binfmt_elf.c).
func (r *coreReader) findFailing() {
	for i := range r.process.Threads {
		s := r.process.Threads[i].Signal
		if s != nil && s.Number == r.notes.threads[i].cursig && endsProcess(s.Number) && !r.debuggerStop(&r.process.Threads[i]) {
			r.process.Failing = i
			return
		}
	}
}

// debuggerStop reports whether a debugger caused a SIGTRAP, so that nothing
// failed. A trap instruction of the program is a failure.
func (r *coreReader) debuggerStop(t *Thread) bool {
	const sigtrap, int3 = 5, 0xcc
	if t.Signal.Number != sigtrap || t.Signal.CodeName == "" && t.Signal.Code == 0 {
		return false
	}
	if t.Signal.Code != siginfo.Kernel {
		return t.Signal.Code > 0 // breakpoints, single steps and ptrace events (ptrace(2))
	}
	var b [1]byte
	_, err := r.process.ReadMemory(t.Registers.PC()-1, b[:])
	return err == nil && b[0] != int3 // a debugger resets pc to its breakpoint
}

// truncation adds a limit that says what a truncated core lacks.
func (r *coreReader) truncation() {
	severe := func(format string, args ...any) {
		r.process.Limits = append(r.process.Limits, evidence.Limit{Code: evidence.LimitTruncated, Subject: r.process.Program.Path, Reason: fmt.Sprintf(format, args...), Severe: true}.Worded())
	}
	if r.core.truncated() {
		lost := 0
		for i := range r.core.loads {
			if l := &r.core.loads[i]; uint64(len(r.core.contents(l.offset, l.filesz))) < l.filesz {
				lost++
			}
		}
		severe("core truncated at %s of %s (file offset %#x): %d of %d mappings missing or cut",
			mebibytes(uint64(len(r.core.data))), mebibytes(r.core.wanted), len(r.core.data), lost, len(r.core.loads)+r.core.headersCut)
	}
	if r.core.headersCut > 0 {
		severe("core truncated within its program headers: %d mappings are not even listed", r.core.headersCut)
	}
	if r.notes.cut {
		severe("the core's notes are cut; %d threads were read, there may be more", len(r.notes.threads))
	}
	for _, text := range r.notes.problems {
		severe("the core's notes are damaged: %s", text)
	}
	if len(r.notes.auxv) == 0 {
		severe("the core has no auxiliary vector (NT_AUXV)")
	}
	if len(r.notes.files) == 0 {
		r.process.Limits = append(r.process.Limits, evidence.Limit{Code: evidence.LimitNoFileList, Subject: r.process.Program.Path,
			Reason: "the core names no mapped files (NT_FILE); the objects come from the dynamic linker's list"}.Worded())
	}
}

// nameStack names the first thread's stack, on which the kernel put the
// random bytes and the program's name.
func (r *coreReader) nameStack() {
	for _, kind := range []uint64{auxRandom, auxExecFn} {
		if m := r.process.MappingAt(evidence.Addr(r.process.Auxv[kind])); m != nil && m.Path == "" && m.Writable() {
			m.Path = "[stack]"
			return
		}
	}
}

// countMissing fills Mapping.Missing, and adds a limit for memory that the core
// should hold and does not.
func (r *coreReader) countMissing() {
	const named = 4
	var names []string
	missing := 0
	for i := range r.process.Mappings {
		m := &r.process.Mappings[i]
		m.Missing = m.size() - min(m.size(), r.core.inCore(uint64(m.Start), uint64(m.End)))
		if m.Missing == 0 {
			continue
		}
		m.Missing -= min(m.Missing, r.inObjects(m))
		m.Untouched = m.untouched(r.core)
		if m.Missing == 0 || m.Untouched || m.Perms == "---" || m.Path == "[vvar]" || m.Path == "[vdso]" || uint64(m.Start) >= canonicalEnd {
			continue
		}
		missing++
		if len(names) == named {
			continue
		}
		if name := missingName(m); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	if missing > 0 && !r.core.truncated() {
		r.process.Limits = append(r.process.Limits, evidence.Limit{Code: evidence.LimitMemory, Subject: r.process.Program.Path,
			Count: uint64(missing), Of: uint64(len(r.process.Mappings)), Names: names, Reason: fmt.Sprintf(
				"%d of %d mappings are missing or partly missing from the core: %s", missing, len(r.process.Mappings), strings.Join(names, ", "))}.Worded())
	}
}

// untouched reports whether the core leaves a mapping out because it was never
// written: the kernel dumps anonymous memory once it has been written
// (vma_dump_size in fs/coredump.c). Memory that the program excluded
// (MADV_DONTDUMP) looks the same.
func (m *Mapping) untouched(core *elfCore) bool {
	return core.dumpsWritten && !core.truncated() && m.Path == "" && m.Writable() && m.Missing == m.size()
}

func missingName(m *Mapping) string {
	if m.Path != "" {
		return wording.Name(m.Path)
	}
	return fmt.Sprintf("%v (%s)", m.Start, m.Perms)
}

// inObjects returns how many of the bytes that the core leaves out of a
// mapping the matching object serves.
func (r *coreReader) inObjects(m *Mapping) uint64 {
	module := r.process.ModuleAt(m.Start)
	if module == nil || module.Object == nil {
		return 0
	}
	asFile := !m.Writable() && module.keeps(m.Start)
	unwritten := m.file() && r.core.dumpsWritten && !r.core.truncated()
	if !asFile && !unwritten {
		return 0
	}
	return m.size()
}

// permissionsFromObjects completes the mappings that a debugger's core only
// names: gdb's gcore writes no segment for memory that was never written. The
// permissions are those of the segments of the object with the same build-id.
func (r *coreReader) permissionsFromObjects() {
	for i := range r.process.Mappings {
		m := &r.process.Mappings[i]
		if m.Perms != unknownPerms {
			continue
		}
		module := r.process.ModuleAt(m.Start)
		if module == nil || module.Object == nil {
			continue
		}
		for _, s := range module.Object.Segments() {
			if link := module.LinkAddr(m.Start); link >= pageDown(s.Vaddr) && link < s.Vaddr+s.Memsz {
				m.Perms = permsOf(s.Flags)
			}
		}
	}
}
