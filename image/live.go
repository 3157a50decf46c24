package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// OpenLive stops every thread of a process and reads it in place. Close resumes
// it in the state it was found in: a stopped process stays stopped, and a
// pending signal is delivered. The same happens when this process ends without
// Close.
//
// The errors say whether the process exists, may be traced, is traced
// already, and has anything to read.
func OpenLive(pid int, opts Options) (*Process, error) {
	status, err := checkLive(pid)
	if err != nil {
		return nil, err
	}
	pid = status.tgid
	t := newTracer(pid)
	var p *Process
	err = guarded(func() (err error) {
		p, err = openStopped(t, &status, opts)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, t.detach())
	}
	return p, nil
}

// checkLive rejects a process that cannot be read, before any thread is
// stopped.
func checkLive(pid int) (procStatus, error) {
	if pid <= 0 {
		return procStatus{}, fmt.Errorf("%d is no process id", pid)
	}
	s, err := readStatus(pid)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return s, fmt.Errorf("there is no process %d: %w", pid, os.ErrNotExist)
	}
	if err != nil {
		return s, fmt.Errorf("process %d: %w", pid, err)
	}
	switch {
	case s.tgid == os.Getpid():
		return s, fmt.Errorf("process %d is this program itself", pid)
	case s.zombie() && !runsOn(s.tgid):
		return s, fmt.Errorf("process %d (%s) has ended: it is a zombie that its parent has not waited for", pid, s.name)
	case s.kernelThread || !s.addressSpace && !s.zombie():
		return s, fmt.Errorf("process %d (%s) is a kernel thread and has no memory of its own", pid, s.name)
	case s.tracer != 0:
		return s, attachError(pid, &s, nil)
	}
	class, machine, err := elfClassOf(s.tgid)
	if err == nil && (class != byte(elf.ELFCLASS64) || elf.Machine(machine) != elf.EM_X86_64) {
		return s, fmt.Errorf("process %d (%s) runs a program for %v, %v; only x86-64 is supported",
			pid, s.name, elf.Machine(machine), elf.Class(class))
	}
	return s, nil
}

// runsOn reports whether other threads still run after the first has ended.
func runsOn(pid int) bool {
	tids, _ := listTasks(pid)
	for _, tid := range tids {
		if s, err := readStatus(tid); err == nil && !s.zombie() {
			return true
		}
	}
	return false
}

func openStopped(t *tracer, status *procStatus, opts Options) (*Process, error) {
	err := t.do(func() error {
		if err := t.stopAll(); err != nil {
			return err
		}
		return t.readRegisters()
	})
	if err != nil {
		return nil, err
	}
	if len(t.threads) == 0 {
		for _, l := range t.stragglers() {
			return nil, fmt.Errorf("process %d: %s", t.pid, l.Text)
		}
		return nil, fmt.Errorf("process %d ended before it could be stopped", t.pid)
	}
	pid := t.pid
	p := newProcess(opts)
	p.stackLimit = stackLimitOf(pid)
	p.Program = evidence.Program{Source: evidence.SourceLive, PID: pid, Command: status.name, Args: readCommandLine(pid)}
	p.setTracees(t)
	// Memory is read through a stopped thread, because the first may have
	// ended.
	reader := t.threads[0].tid
	file, err := p.openMemory(reader)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	p.close = func() error { return errors.Join(file.Close(), t.detach()) }
	return p, nil
}

// openMemory reads a process through one of its stopped threads. The file is
// the source of later reads.
func (p *Process) openMemory(reader int) (file *os.File, err error) {
	if p.Mappings, err = liveMappings(reader); err != nil {
		return nil, err
	}
	if p.Auxv, err = readLiveAuxv(reader); err != nil {
		return nil, err
	}
	if file, err = os.Open(procFile(reader, "mem")); err != nil {
		return nil, err
	}
	p.memory = &liveMemory{file: file, process: p}
	p.loadModules(&fileSource{exe: p.options.Exe, finder: &p.options.Finder, files: p.options.Files, live: liveFiles(reader)})
	return file, nil
}

func (p *Process) setTracees(t *tracer) {
	for i, thread := range t.threads {
		ref := evidence.ThreadRef{Number: i + 1, TID: thread.tid, Name: threadName(t.pid, thread.tid)}
		p.Threads = append(p.Threads, Thread{Ref: ref, Registers: thread.regs, Signal: thread.siginfo})
		if s := thread.siginfo; p.Failing < 0 && s != nil && endsProcess(s.Number) && s.Code > 0 {
			p.Failing = i
		}
	}
	p.Program.Threads = len(p.Threads)
	p.Limits = append(p.Limits, t.stragglers()...)
}

// liveFiles returns paths to a mapped file that do not depend on its name: the
// executable's link, the process's own root, and the links of its mappings
// (proc_pid_map_files(5), root only).
func liveFiles(pid int) func(m *Module) []string {
	return func(m *Module) []string {
		var list []string
		if filepath.IsAbs(m.Path) && !pseudoFile(m.Path) {
			list = append(list, procFile(pid, "root", m.Path))
		}
		if exe, err := os.Readlink(procFile(pid, "exe")); err == nil && exe == m.Path {
			list = append(list, procFile(pid, "exe"))
		}
		if len(m.ranges) > 0 {
			r := m.ranges[0]
			list = append(list, procFile(pid, "map_files", fmt.Sprintf("%x-%x", uint64(r.start), uint64(r.end))))
		}
		return list
	}
}

// liveMemory reads a stopped process through /proc/PID/mem.
type liveMemory struct {
	file    *os.File
	process *Process
}

// ReadMemory implements Memory.
func (m *liveMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	done := 0
	for done < len(p) {
		at := addr + evidence.Addr(done)
		n, err := unix.Pread(int(m.file.Fd()), p[done:], int64(at))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return done, m.failed(at, err)
		}
		done += n
	}
	return done, nil
}

func (m *liveMemory) failed(addr evidence.Addr, err error) error {
	switch {
	case m.process.MappingAt(addr) == nil:
		return &MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	case err == nil:
		return &MemoryError{Addr: addr, Reason: "could not be read: the process is gone"}
	}
	return &MemoryError{Addr: addr, Reason: "could not be read: " + err.Error()}
}
