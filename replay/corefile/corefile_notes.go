package corefile

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/internal/procmaps"
	"diagnose/internal/signalsets"
)

// Types of notes (linux/elf.h).
const (
	notePrstatus = 1
	noteFPRegs   = 2
	notePrpsinfo = 3
	noteAuxv     = 6
	noteXState   = 0x202
	noteFile     = 0x46494c45
	noteSiginfo  = 0x53494749
)

// prstatus is struct elf_prstatus, prpsinfo struct elf_prpsinfo of x86-64
// (linux/elfcore.h).
type prstatus struct {
	signo, code, errno   int32
	cursig               int16
	_                    int16
	sigpend, sighold     uint64
	pid, ppid, pgrp, sid int32
	utime, stime, cu, cs [2]int64
	registers            [216]byte
	fpvalid              int32
	_                    int32
}

type prpsinfo struct {
	state, sname, zombie byte
	nice                 int8
	_                    int32
	flags                uint64
	uid, gid             uint32
	pid, ppid, pgrp, sid int32
	name                 [16]byte
	args                 [80]byte
}

// notes returns the notes in the kernel's order: readers assign the notes that follow a
// PRSTATUS to its thread (elf_core_dump in fs/binfmt_elf.c).
func (w *coreWriter) notes(areas []procmaps.Area) ([]byte, error) {
	var b []byte
	failing := &w.options.Threads[0]
	for i, t := range w.options.Threads {
		status, err := w.threadStatus(t.TID, failing.Signal)
		if err != nil {
			return nil, err
		}
		b = addNote(b, "CORE", notePrstatus, status)
		if i == 0 {
			if b, err = w.processNotes(b, areas); err != nil {
				return nil, err
			}
		}
		if fp, err := w.options.Source.Regset(t.TID, noteFPRegs); err == nil {
			b = addNote(b, "CORE", noteFPRegs, fp)
		}
		if x, err := w.options.Source.Regset(t.TID, noteXState); err == nil {
			b = addNote(b, "LINUX", noteXState, x)
		}
	}
	return b, nil
}

func (w *coreWriter) processNotes(b []byte, areas []procmaps.Area) ([]byte, error) {
	failing := &w.options.Threads[0]
	info, err := processInfo(w.options.PID, failing.TID)
	if err != nil {
		return nil, err
	}
	b = addNote(b, "CORE", notePrpsinfo, info)
	if failing.Info != nil {
		b = addNote(b, "CORE", noteSiginfo, failing.Info[:])
	}
	auxv, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", failing.TID))
	if err != nil {
		return nil, err
	}
	b = addNote(b, "CORE", noteAuxv, auxv)
	return addNote(b, "CORE", noteFile, fileNote(areas)), nil
}

func addNote(b []byte, owner string, kind uint32, desc []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(owner)+1))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = append(b, owner...)
	b = append(b, 0)
	b = append(b, make([]byte, -len(b)&3)...)
	b = append(b, desc...)
	return append(b, make([]byte, -len(b)&3)...)
}

func (w *coreWriter) threadStatus(tid, signal int) ([]byte, error) {
	registers, err := w.options.Source.Regset(tid, notePrstatus)
	if err != nil {
		return nil, fmt.Errorf("registers of thread %d: %w", tid, err)
	}
	stat, err := readStat(w.options.PID, tid)
	if err != nil {
		return nil, err
	}
	signals, err := signalsets.Read(tid)
	if err != nil {
		return nil, err
	}
	s := prstatus{
		signo: int32(signal), cursig: int16(signal), sigpend: uint64(signals.Pending), sighold: uint64(signals.Blocked),
		pid: int32(tid), ppid: stat.number(4), pgrp: stat.number(5), sid: stat.number(6),
		utime: stat.time(14), stime: stat.time(15), cu: stat.time(16), cs: stat.time(17), fpvalid: 1,
	}
	if len(registers) != len(s.registers) {
		return nil, fmt.Errorf("registers of thread %d: %d bytes, not %d: not x86-64 code", tid, len(registers), len(s.registers))
	}
	copy(s.registers[:], registers)
	return unsafe.Slice((*byte)(unsafe.Pointer(&s)), unsafe.Sizeof(s)), nil
}

// processInfo reports the state 'R', as the kernel does: there the process runs while it writes
// its core.
func processInfo(pid, tid int) ([]byte, error) {
	stat, err := readStat(pid, tid)
	if err != nil {
		return nil, err
	}
	p := prpsinfo{
		sname: 'R', nice: int8(stat.number(19)), flags: uint64(stat.long(9)),
		pid: int32(pid), ppid: stat.number(4), pgrp: stat.number(5), sid: stat.number(6),
	}
	var info unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", tid), &info); err != nil {
		return nil, fmt.Errorf("/proc/%d: %w", tid, err)
	}
	p.uid, p.gid = info.Uid, info.Gid
	copy(p.name[:len(p.name)-1], stat.name)
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", tid))
	if err != nil {
		return nil, err
	}
	n := copy(p.args[:len(p.args)-1], args)
	for i, c := range p.args[:n] {
		if c == 0 {
			p.args[i] = ' '
		}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p)), nil
}

// fileNote is NT_FILE: all mapped files (fill_files_note in fs/binfmt_elf.c).
func fileNote(areas []procmaps.Area) []byte {
	var entries, names []byte
	count := uint64(0)
	for _, a := range areas {
		if a.Inode == 0 {
			continue
		}
		count++
		for _, v := range []uint64{uint64(a.Start), uint64(a.End), a.Offset / corePage} {
			entries = binary.LittleEndian.AppendUint64(entries, v)
		}
		names = append(append(names, a.Path...), 0)
	}
	b := binary.LittleEndian.AppendUint64(nil, count)
	b = binary.LittleEndian.AppendUint64(b, corePage)
	return append(append(b, entries...), names...)
}

// procStat is /proc/PID/stat, whose fields proc_pid_stat(5) counts from 1.
type procStat struct {
	name   string
	fields []string // from field 3 on
}

// readStat reads the file of a thread. That of the first thread counts the times of all.
func readStat(pid, tid int) (*procStat, error) {
	path := fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid)
	if pid == tid {
		path = fmt.Sprintf("/proc/%d/stat", pid)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	// The name may hold spaces and parentheses.
	open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if open < 0 || end < open {
		return nil, fmt.Errorf("%s: no name in %q", path, text)
	}
	return &procStat{string(text[open+1 : end]), strings.Fields(string(text[end+1:]))}, nil
}

func (s *procStat) long(field int) int64 {
	if field-3 >= len(s.fields) {
		return 0
	}
	v, _ := strconv.ParseInt(s.fields[field-3], 10, 64)
	return v
}

func (s *procStat) number(field int) int32 { return int32(s.long(field)) }

// time converts a number of ticks to a struct timeval. USER_HZ is 100 on x86.
func (s *procStat) time(field int) [2]int64 {
	ticks := s.long(field)
	return [2]int64{ticks / 100, ticks % 100 * 10000}
}

// The compiler gives the two structs the kernel's sizes.
var (
	_ [336 - unsafe.Sizeof(prstatus{})]struct{}
	_ [unsafe.Sizeof(prstatus{}) - 336]struct{}
	_ [136 - unsafe.Sizeof(prpsinfo{})]struct{}
	_ [unsafe.Sizeof(prpsinfo{}) - 136]struct{}
)
