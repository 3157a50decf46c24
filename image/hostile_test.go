package image

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// TestNotesOfManySegments: 60,000 note segments of a core name the same
// thousand threads.
func TestNotesOfManySegments(t *testing.T) {
	note := noteBytes("CORE", notePrstatus, prstatusBytes(1, 11, 0x10000, 0x20000))
	notes := bytes.Repeat(note, 1000)
	segments := make([]programHeader, 60_000)
	data := coreBytes(notes, segments)
	c, err := parseCore("many", data)
	if err != nil {
		t.Fatal(err)
	}
	first := c.notes[0]
	for range segments {
		c.notes = append(c.notes, first)
	}
	if n := c.readNotes(); len(n.threads) < 1000 || len(n.threads) > len(data)/len(note) || !n.cut {
		t.Errorf("%d threads out of %d bytes, cut %v", len(n.threads), len(data), n.cut)
	}
}

// TestTooManyNotes reads the contents of a sparse file's hole: notes without a
// name, a type or contents.
func TestTooManyNotes(t *testing.T) {
	var n coreNotes
	n.parse(make([]byte, noteHeaderSize*(mostNotes+10)))
	if !n.cut || n.seen != mostNotes {
		t.Errorf("%d notes were seen, cut %v", n.seen, n.cut)
	}
	n = coreNotes{threads: make([]coreThread, mostThreads)}
	n.parse(bytes.Repeat(noteBytes("CORE", notePrstatus, prstatusBytes(1, 11, 0, 0)), 3))
	if !n.cut || len(n.threads) != mostThreads {
		t.Errorf("%d threads, cut %v", len(n.threads), n.cut)
	}
}

// emptyMemory has nothing mapped.
type emptyMemory struct{}

// ReadMemory implements Memory.
func (emptyMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	return 0, &MemoryError{Addr: addr, Reason: "is not in the core"}
}

// TestTooManyModules maps a page each of more files than any process loads.
func TestTooManyModules(t *testing.T) {
	list := make([]Mapping, mostModules+100)
	for i := range list {
		start := evidence.Addr(i+1) * pageSize
		list[i] = Mapping{Start: start, End: start + pageSize, Perms: "r-x", Path: fmt.Sprintf("/%d", i)}
	}
	l := &loader{memory: emptyMemory{}, mappings: list}
	l.groupMappings()
	if got := len(l.modules); got != mostModules {
		t.Errorf("%d modules", got)
	}
	wantLimit(t, &Process{Limits: l.limits}, true, "more than")
}

// TestOverlappingSegments: many objects claim the whole address space a hundred
// times each.
func TestOverlappingSegments(t *testing.T) {
	list := make([]Mapping, 60_000)
	for i := range list {
		start := evidence.Addr(2*i+1) * pageSize
		list[i] = Mapping{Start: start, End: start + pageSize, Perms: "rw-"}
	}
	image := new(elfImage)
	for i := range mostHeaders {
		image.loads = append(image.loads, programHeader{vaddr: uint64(i) * pageSize, memsz: canonicalEnd / 2})
	}
	l := &loader{mappings: list}
	for range 1000 {
		l.modules = append(l.modules, &Module{image: image})
	}
	total := 0
	l.placeModules()
	for _, m := range l.modules {
		total += cap(m.ranges)
	}
	if total < len(list)/2 || total > 10*len(list) {
		t.Errorf("room for %d ranges", total)
	}
}

// TestThreadNamesArePrintable: a process chooses its name freely, and errors
// contain the name.
func TestThreadNamesArePrintable(t *testing.T) {
	runtime.LockOSThread() // the thread ends with its name
	name := append([]byte("a\x1b[2Jb"), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	s, err := readStatus(unix.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	if comm := threadName(unix.Getpid(), unix.Gettid()); s.name != comm || strings.Contains(comm, "\x1b") || !strings.Contains(comm, `\x1b`) {
		t.Errorf("status says %q, comm %q", s.name, comm)
	}
}
