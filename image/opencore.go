package image

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image/object"
)

// OpenCore reads a core file of x86-64 Linux. A compressed one (zst, lz4, gz,
// xz) is unpacked into a private temporary file. path "-" is standard input.
//
// The error for an unusable file is an *object.FormatError or one of the file
// system. A truncated core is a Process with a severe limit.
func OpenCore(path string, opts Options) (*Process, error) {
	input, err := openInput(path, &opts)
	if err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	return openFrom(input, path, opts)
}

// openFrom makes the process, which owns the input.
func openFrom(input *coreInput, path string, opts Options) (*Process, error) {
	var p *Process
	err := guarded(func() (err error) {
		p, err = readCore(input.name, input.data, opts)
		return err
	})
	if err != nil {
		input.close()
		return nil, fmt.Errorf("core: %w", err)
	}
	p.Program.Path = path
	p.Limits = append(input.limits, p.Limits...)
	p.close, p.forget, p.coreFile = input.close, input.forget, input.file
	return p, nil
}

// readCore makes a process from a core file's bytes. name is the file's name in
// errors; its folder may hold the executable.
func readCore(name string, data []byte, opts Options) (*Process, error) {
	core, err := parseCore(name, data)
	if err != nil {
		return nil, err
	}
	notes := core.readNotes()
	if len(notes.threads) == 0 {
		return nil, core.noThreads(notes)
	}
	p := &Process{options: opts, Auxv: notes.auxv, Failing: -1}
	p.Program = evidence.Program{Source: evidence.SourceCore, Path: name, Command: notes.name, Args: notes.args, PID: notes.pid}
	p.Mappings = coreMappings(core.loads, sortFiles(notes.files), core.byDebugger)
	core.findDumpsWritten(p.Mappings)
	p.memory = &coreMemory{core: core, process: p}
	p.setThreads(notes)
	p.truncation(core, notes)
	source := &fileSource{exe: opts.Exe, finder: &p.options.Finder}
	if strings.Contains(name, "/") {
		source.beside = filepath.Dir(name)
	}
	p.loadModules(source)
	p.permissionsFromObjects()
	p.findFailing(notes)
	p.nameStack()
	p.countMissing(core)
	return p, nil
}

// readNotes parses no more bytes than the file has, because any number of
// segments may cover the same ones.
func (c *elfCore) readNotes() *coreNotes {
	notes := new(coreNotes)
	left := uint64(len(c.data))
	for _, h := range c.notes {
		segment := c.contents(h.offset, min(h.filesz, left))
		left -= uint64(len(segment))
		notes.cut = notes.cut || uint64(len(segment)) < h.filesz
		notes.parse(segment)
	}
	return notes
}

func (c *elfCore) noThreads(notes *coreNotes) error {
	at, reason := uint64(0), "no notes, so no thread's registers"
	if len(c.notes) > 0 {
		at, reason = c.notes[0].offset, "the notes hold no thread's registers (NT_PRSTATUS)"
	}
	if c.truncated() {
		reason = fmt.Sprintf("%s: the file ends at %s of %s", reason, mebibytes(uint64(len(c.data))), mebibytes(c.wanted))
	}
	var cause error
	if len(notes.problems) > 0 {
		cause = errors.New(notes.problems[0])
	}
	return &object.FormatError{File: c.name, Section: "notes", Offset: at, Reason: reason, Err: cause}
}

// setThreads converts the threads. gdb's gcore writes a siginfo for each
// thread, with signal 0 if there was none.
func (p *Process) setThreads(notes *coreNotes) {
	p.Threads = make([]Thread, len(notes.threads))
	numbers := threadNumbers(notes)
	for i, t := range notes.threads {
		ref := evidence.ThreadRef{Number: numbers[i], TID: t.tid}
		if t.tid == notes.pid {
			ref.Name = notes.name
		}
		signal := t.siginfo
		if signal != nil && signal.Number == 0 {
			signal = nil
		}
		p.Threads[i] = Thread{Ref: ref, Registers: t.regs, Signal: signal}
	}
	p.Program.Threads = len(p.Threads)
	if p.Program.PID == 0 {
		p.Program.PID = notes.threads[0].tid
	}
	if first := &notes.threads[0]; first.siginfo == nil && first.cursig != 0 {
		s := signalOf(first.cursig)
		p.Threads[0].Signal = &s
	}
}

// threadNumbers counts the threads from 1 in the order in which they were created, as
// live processes and recordings do: a core has the failing thread first. The kernel
// assigns ids in ascending order and wraps around to the lowest (kernel/pid.c,
// alloc_pid); the process id is that of the first thread.
func threadNumbers(notes *coreNotes) []int {
	first := notes.pid
	if !slices.ContainsFunc(notes.threads, func(t coreThread) bool { return t.tid == first }) {
		first = 0 // the first thread ended, or its id is not known
	}
	order := make([]int, len(notes.threads))
	for i := range order {
		order[i] = i
	}
	began := func(i int) uint32 { return uint32(notes.threads[i].tid - first) } // wraps around below the first
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(began(a), began(b)) })
	numbers := make([]int, len(order))
	for n, i := range order {
		numbers[i] = n + 1
	}
	return numbers
}

// findFailing picks the thread that got the fatal signal. The kernel writes the
// signal's number into pr_cursig of every thread, but a siginfo only for the
// first thread, which is the failing one (fs/binfmt_elf.c).
func (p *Process) findFailing(notes *coreNotes) {
	for i := range p.Threads {
		s := p.Threads[i].Signal
		if s != nil && s.Number == notes.threads[i].cursig && endsProcess(s.Number) && !p.debuggerStop(&p.Threads[i]) {
			p.Failing = i
			return
		}
	}
}

// debuggerStop reports whether a debugger caused a SIGTRAP, so that nothing
// failed. A trap instruction of the program is a failure.
func (p *Process) debuggerStop(t *Thread) bool {
	const sigtrap, int3 = 5, 0xcc
	if t.Signal.Number != sigtrap || t.Signal.CodeName == "" && t.Signal.Code == 0 {
		return false
	}
	if t.Signal.Code != siKernel {
		return t.Signal.Code > 0 // breakpoints, single steps and ptrace events (ptrace(2))
	}
	var b [1]byte
	_, err := p.ReadMemory(t.Registers.PC()-1, b[:])
	return err == nil && b[0] != int3 // a debugger resets pc to its breakpoint
}

// truncation adds a limit that says what a truncated core lacks.
func (p *Process) truncation(core *elfCore, notes *coreNotes) {
	severe := func(format string, args ...any) {
		p.Limits = append(p.Limits, evidence.Limit{Subject: p.Program.Path, Text: fmt.Sprintf(format, args...), Severe: true})
	}
	if core.truncated() {
		lost := 0
		for i := range core.loads {
			if l := &core.loads[i]; uint64(len(core.contents(l.offset, l.filesz))) < l.filesz {
				lost++
			}
		}
		severe("core truncated at %s of %s (file offset %#x): %d of %d mappings missing or cut",
			mebibytes(uint64(len(core.data))), mebibytes(core.wanted), len(core.data), lost, len(core.loads)+core.headersCut)
	}
	if core.headersCut > 0 {
		severe("core truncated within its program headers: %d mappings are not even listed", core.headersCut)
	}
	if notes.cut {
		severe("the core's notes are cut; %d threads were read, there may be more", len(notes.threads))
	}
	for _, text := range notes.problems {
		severe("the core's notes are damaged: %s", text)
	}
	if len(notes.auxv) == 0 {
		severe("the core has no auxiliary vector (NT_AUXV)")
	}
	if len(notes.files) == 0 {
		p.Limits = append(p.Limits, evidence.Limit{Subject: p.Program.Path,
			Text: "the core names no mapped files (NT_FILE); the objects come from the dynamic linker's list"})
	}
}

func mebibytes(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// nameStack names the first thread's stack, on which the kernel put the
// random bytes and the program's name.
func (p *Process) nameStack() {
	for _, kind := range []uint64{auxRandom, auxExecFn} {
		if m := p.MappingAt(evidence.Addr(p.Auxv[kind])); m != nil && m.Path == "" && m.Writable() {
			m.Path = "[stack]"
			return
		}
	}
}

// countMissing fills Mapping.Missing, and adds a limit for memory that the core
// should hold and does not.
func (p *Process) countMissing(core *elfCore) {
	const named = 4
	var names []string
	missing := 0
	for i := range p.Mappings {
		m := &p.Mappings[i]
		m.Missing = m.size() - min(m.size(), core.inCore(uint64(m.Start), uint64(m.End)))
		if m.Missing == 0 {
			continue
		}
		m.Missing -= min(m.Missing, p.inObjects(m, core))
		if m.Missing == 0 || m.untouched(core) || m.Perms == "---" || m.Path == "[vvar]" || m.Path == "[vdso]" || uint64(m.Start) >= canonicalEnd {
			continue
		}
		missing++
		if len(names) == named {
			continue
		}
		if name := p.missingName(m); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	if missing > 0 && !core.truncated() {
		p.Limits = append(p.Limits, evidence.Limit{Subject: p.Program.Path, Text: fmt.Sprintf(
			"%d of %d mappings are missing or partly missing from the core: %s", missing, len(p.Mappings), strings.Join(names, ", "))})
	}
}

// untouched reports whether the core leaves a mapping out because it was never
// written: the kernel dumps anonymous memory once it has been written
// (vma_dump_size in fs/coredump.c). Memory that the program excluded
// (MADV_DONTDUMP) looks the same.
func (m *Mapping) untouched(core *elfCore) bool {
	return core.dumpsWritten && !core.truncated() && m.Path == "" && m.Writable() && m.Missing == m.size()
}

func (p *Process) missingName(m *Mapping) string {
	if m.Path != "" {
		return printable(m.Path)
	}
	return fmt.Sprintf("%v (%s)", m.Start, m.Perms)
}

// inObjects returns how many of the bytes that the core leaves out of a
// mapping the matching object serves.
func (p *Process) inObjects(m *Mapping, core *elfCore) uint64 {
	module := p.ModuleAt(m.Start)
	if module == nil || module.Object == nil {
		return 0
	}
	asFile := !m.Writable() && module.keeps(m.Start)
	unwritten := m.file() && core.dumpsWritten && !core.truncated()
	if !asFile && !unwritten {
		return 0
	}
	return m.size()
}
