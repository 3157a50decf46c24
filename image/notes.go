package image

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
)

// Note types (linux/elf.h).
const (
	notePrstatus   = 1
	noteFPRegs     = 2
	notePrpsinfo   = 3
	noteAuxv       = 6
	noteXState     = 0x202
	noteFile       = 0x46494c45
	noteSiginfo    = 0x53494749
	noteHeaderSize = 12
)

// Offsets in struct elf_prstatus and struct elf_prpsinfo of x86-64
// (linux/elfcore.h).
const (
	prstatusCursig = 12
	prstatusPID    = 32
	prstatusRegs   = 112
	prpsinfoPID    = 24
	prpsinfoName   = 40
	prpsinfoArgs   = 56
	prpsinfoSize   = 136
)

const (
	// mostThreads bounds the threads; the kernel's limit of mappings
	// (vm.max_map_count) allows half as many by default.
	mostThreads = 1 << 16
	// mostNotes bounds all notes; a thread has four or five.
	mostNotes = 16 * mostThreads
)

// fileMapping is an entry of NT_FILE.
type fileMapping struct {
	start, end, offset uint64
	path               string
}

// coreThread is a thread as its notes show it.
type coreThread struct {
	tid, cursig int
	regs        Registers
	siginfo     *evidence.Signal
}

// coreNotes is what a core's notes say.
type coreNotes struct {
	threads []coreThread
	auxv    map[uint64]uint64
	files   []fileMapping
	// pid, name and args are of NT_PRPSINFO.
	pid        int
	name, args string
	// seen counts the notes.
	seen int
	// problems describes notes that could not be read.
	problems []string
	// cut says that the last note is incomplete.
	cut bool
}

// parse reads the notes of one PT_NOTE segment. The notes that follow a
// PRSTATUS belong to its thread (elf_core_dump in the kernel's fs/binfmt_elf.c;
// gdb's gcore keeps that order).
func (n *coreNotes) parse(b []byte) {
	for len(b) >= noteHeaderSize {
		if n.seen++; n.seen > mostNotes || len(n.threads) > mostThreads {
			n.overflow()
			return
		}
		le := binary.LittleEndian
		nameSize, descSize, kind := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		nameEnd := noteHeaderSize + (nameSize+3)&^3
		end := nameEnd + (descSize+3)&^3
		if nameEnd+descSize > uint64(len(b)) {
			n.cut = true
			if nameEnd < uint64(len(b)) {
				n.note(b[noteHeaderSize:noteHeaderSize+nameSize], kind, b[nameEnd:])
			}
			return
		}
		n.note(b[noteHeaderSize:noteHeaderSize+nameSize], kind, b[nameEnd:nameEnd+descSize])
		b = b[min(end, uint64(len(b))):]
	}
	n.cut = n.cut || len(b) > 0
}

// overflow stops the reading of a core that has more notes than any real one.
func (n *coreNotes) overflow() {
	n.threads = n.threads[:min(len(n.threads), mostThreads)]
	n.seen = mostNotes
	n.cut = true
}

func (n *coreNotes) note(name []byte, kind uint32, desc []byte) {
	owner := string(bytes.TrimRight(name, "\x00"))
	if owner == "LINUX" && kind == noteXState {
		n.vector(desc)
	}
	if owner != "CORE" {
		return
	}
	switch kind {
	case notePrstatus:
		n.prstatus(desc)
	case noteFPRegs:
		n.vector(desc)
	case notePrpsinfo:
		n.prpsinfo(desc)
	case noteAuxv:
		n.auxv = parseAuxv(desc)
	case noteSiginfo:
		n.signal(desc)
	case noteFile:
		files, err := parseFileNote(desc)
		n.files = files
		if err != nil {
			n.problem("NT_FILE: %v", err)
		}
	}
}

func (n *coreNotes) problem(format string, args ...any) {
	const enough = 8
	if len(n.problems) < enough {
		n.problems = append(n.problems, fmt.Sprintf(format, args...))
	}
}

func (n *coreNotes) prstatus(desc []byte) {
	if len(desc) < prstatusRegs+userRegsSize {
		n.problem("NT_PRSTATUS of thread %d has %d bytes, too few for its registers", len(n.threads)+1, len(desc))
		return
	}
	regs, err := parseUserRegs(desc[prstatusRegs:])
	if err != nil {
		n.problem("NT_PRSTATUS of thread %d: %v", len(n.threads)+1, err)
		return
	}
	le := binary.LittleEndian
	n.threads = append(n.threads, coreThread{
		tid:    int(int32(le.Uint32(desc[prstatusPID:]))),
		cursig: int(int16(le.Uint16(desc[prstatusCursig:]))),
		regs:   regs,
	})
}

func (n *coreNotes) vector(desc []byte) {
	if len(n.threads) == 0 {
		return
	}
	if t := &n.threads[len(n.threads)-1]; t.regs.Vector == nil {
		t.regs.Vector = parseFXSave(desc)
	}
}

func (n *coreNotes) signal(desc []byte) {
	s, ok := siginfo.Parse(desc)
	if !ok {
		n.problem("NT_SIGINFO has %d bytes", len(desc))
		return
	}
	if len(n.threads) == 0 {
		n.problem("NT_SIGINFO precedes every thread")
		return
	}
	if t := &n.threads[len(n.threads)-1]; t.siginfo == nil {
		t.siginfo = &s
	}
}

func (n *coreNotes) prpsinfo(desc []byte) {
	if len(desc) < prpsinfoSize {
		n.problem("NT_PRPSINFO has %d bytes, not %d", len(desc), prpsinfoSize)
		return
	}
	n.pid = int(int32(binary.LittleEndian.Uint32(desc[prpsinfoPID:])))
	n.name = untilNUL(desc[prpsinfoName:prpsinfoArgs])
	n.args = string(bytes.TrimRight([]byte(untilNUL(desc[prpsinfoArgs:prpsinfoSize])), " "))
}

func untilNUL(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// parseAuxv reads an auxiliary vector up to AT_NULL.
func parseAuxv(b []byte) map[uint64]uint64 {
	const most = 256
	auxv := map[uint64]uint64{}
	for ; len(b) >= 16 && len(auxv) < most; b = b[16:] {
		kind := binary.LittleEndian.Uint64(b)
		if kind == 0 {
			break
		}
		auxv[kind] = binary.LittleEndian.Uint64(b[8:])
	}
	return auxv
}

// parseFileNote reads NT_FILE: a count, the unit of the offsets, start, end and
// offset of each mapping, and then as many names (fill_files_note in the
// kernel's fs/binfmt_elf.c). The complete entries of a truncated note are
// returned with the error.
func parseFileNote(b []byte) ([]fileMapping, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("%d bytes, no header", len(b))
	}
	le := binary.LittleEndian
	count, unit := le.Uint64(b), le.Uint64(b[8:])
	if count > uint64(len(b)-16)/24 {
		return nil, fmt.Errorf("%d mappings do not fit into %d bytes", count, len(b))
	}
	names := b[16+24*count:]
	files := make([]fileMapping, 0, count)
	for i := range count {
		entry := b[16+24*i:]
		end := bytes.IndexByte(names, 0)
		if end < 0 {
			return files, fmt.Errorf("names of %d of %d mappings", i, count)
		}
		f := fileMapping{start: le.Uint64(entry), end: le.Uint64(entry[8:]), path: string(names[:end])}
		names = names[end+1:]
		if pages := le.Uint64(entry[16:]); unit == 0 || pages <= (1<<63)/unit {
			f.offset = pages * unit
		}
		if f.start < f.end {
			files = append(files, f)
		}
	}
	return files, nil
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
