package corefile

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
	"diagnose/replay/ptrace"
)

// coreProgram has every kind of memory that the rules of cores distinguish. It crashes when it
// is told to.
const coreProgram = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { P = 4096 };
static char data[3 * P] = "data";
static pthread_barrier_t ready;
static void *wait_for_end(void *p)
{
	volatile double kept = *(int *)p * 1.5;
	pthread_barrier_wait(&ready);
	pause();
	return kept > 0 ? p : 0;
}
static char *map(size_t size, int prot, int flags, int fd, const char *text)
{
	char *p = mmap(0, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		_exit(9);
	if (text)
		strcpy(p + P, text);
	mprotect(p, size, prot);
	printf("%s %p\n", text ? text : "untouched", (void *)p);
	return p;
}
int main(int argc, char **argv)
{
	int rw = PROT_READ | PROT_WRITE, mine = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	int numbers[3] = {1, 2, 3};
	pthread_t t[3];
	pthread_barrier_init(&ready, 0, 4);
	map(8 * P, rw, mine, -1, "touched");
	map(8 * P, PROT_NONE, mine, -1, "forbidden");
	map(8 * P, rw, mine, -1, 0);
	madvise(map(8 * P, rw, mine, -1, "dontdump"), 8 * P, MADV_DONTDUMP);
	strcpy(map(1ull << 32, rw, mine, -1, "huge") + (1ull << 31), "middle");
	map(8 * P, rw, MAP_SHARED | MAP_ANONYMOUS, -1, "shared");
	int fd = memfd_create("m", 0);
	ftruncate(fd, 8 * P);
	map(8 * P, rw, MAP_SHARED, fd, "memfd");
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	ftruncate(fd, 8 * P);
	map(8 * P, rw, MAP_SHARED, fd, "file");
	map(8 * P, rw, MAP_PRIVATE, fd, "dirty");
	ftruncate(fd, 4 * P);
	data[P] = 'x';
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, wait_for_end, &numbers[i]);
	pthread_barrier_wait(&ready);
	puts("ready");
	fflush(stdout);
	getchar();
	*(volatile int *)8 = 1;
	return 0;
}
`

// crashed is a process stopped at its fatal signal.
type crashed struct {
	pid     int
	exe     string
	marks   map[string]evidence.Addr
	threads []CoreThread
	stdin   io.Closer
}

type testRegsets struct{}

func (testRegsets) Regset(tid int, note uint32) ([]byte, error) {
	return ptrace.GetRegset(tid, int(note))
}

// startCrashing starts the program and seizes all its threads. Call it in ptrace.OnThread.
func startCrashing(exe, dir string) (*crashed, error) {
	cmd := exec.Command(exe, filepath.Join(dir, "file"))
	cmd.Dir = dir
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &crashed{pid: cmd.Process.Pid, exe: exe, marks: map[string]evidence.Addr{}, stdin: stdin}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "ready" {
		var name string
		var at uint64
		if _, err := fmt.Sscanf(lines.Text(), "%s %v", &name, &at); err != nil {
			return nil, err
		}
		c.marks[name] = evidence.Addr(at)
	}
	unlimited := unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}
	if err := unix.Prlimit(c.pid, unix.RLIMIT_CORE, &unlimited, nil); err != nil {
		return nil, err
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", c.pid))
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		t := CoreThread{}
		fmt.Sscan(task.Name(), &t.TID)
		if err := ptrace.Seize(t.TID, unix.PTRACE_O_EXITKILL); err != nil {
			return nil, err
		}
		c.threads = append(c.threads, t)
	}
	if _, err := io.WriteString(stdin, "x\n"); err != nil {
		return nil, err
	}
	return c, c.stopAtSignal()
}

func (c *crashed) stopAtSignal() error {
	stop, err := ptrace.WaitFor(c.pid)
	if err != nil || stop.Kind != ptrace.SignalStop || stop.Signal != syscall.SIGSEGV {
		return fmt.Errorf("stop %v, %v", stop, err)
	}
	info, err := ptrace.GetSiginfo(c.pid)
	if err != nil {
		return err
	}
	first := [128]byte(info[:])
	c.threads[0].Signal, c.threads[0].Info = int(stop.Signal), &first
	for _, t := range c.threads[1:] {
		if err := ptrace.Interrupt(t.TID); err != nil {
			return err
		}
		if _, err := ptrace.WaitFor(t.TID); err != nil {
			return err
		}
	}
	return nil
}

// die passes the signal on to the kernel. The other threads die in their stops, so their
// registers and the kernel's notes for them do not change.
func (c *crashed) die() error {
	if err := ptrace.Cont(c.pid, syscall.SIGSEGV); err != nil {
		return err
	}
	// The end of the process is reported after the ends of its threads.
	for _, t := range slices.Backward(c.threads) {
		if err := waitEnd(t.TID); err != nil {
			return err
		}
	}
	return nil
}

func waitEnd(tid int) error {
	for {
		if stop, err := ptrace.WaitFor(tid); err != nil || stop.Kind == ptrace.Ended {
			return err
		}
	}
}

// bothCores crashes the program and returns our core and the kernel's core of the same moment.
func bothCores(t *testing.T) (ours, kernel string, result *CoreResult, c *crashed) {
	crashtest.NeedKernelCores(t)
	dir := t.TempDir()
	exe := crashtest.Compile(t, crashtest.Program{Source: "memory.c", Text: coreProgram, Flags: []string{"-pthread"}})
	ours = filepath.Join(dir, "ours")
	err := ptrace.OnThread(func() (err error) {
		if c, err = startCrashing(exe, dir); err != nil {
			return err
		}
		defer c.stdin.Close()
		f, err := os.OpenFile(ours, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if result, err = WriteCore(f, CoreOptions{PID: c.pid, Threads: c.threads, Source: testRegsets{}}); err != nil {
			return err
		}
		return c.die()
	})
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(found) != 1 {
		t.Fatalf("the kernel left %v", found)
	}
	return ours, found[0], result, c
}

func TestCoreAgainstKernel(t *testing.T) {
	ours, kernel, result, c := bothCores(t)
	a, b := openELF(t, ours), openELF(t, kernel)
	compareNotes(t, a, b)
	compareLoads(t, a, b)
	var disk syscall.Stat_t
	if err := syscall.Stat(ours, &disk); err != nil {
		t.Fatal(err)
	}
	if held := disk.Blocks * 512; result.Bytes == 0 || held > result.Bytes+1<<20 || result.Size != disk.Size {
		t.Errorf("%d bytes of memory, %d on disk, %d long: %+v", result.Bytes, held, disk.Size, result)
	}
	// The file of two of the mappings was truncated after it was mapped.
	dirty := c.marks["dirty"]
	if m := result.Missing; len(m) != 1 || m[0].Range != (Range{dirty + 4*corePage, dirty + 8*corePage}) || !errors.Is(m[0].Err, unix.EIO) {
		t.Errorf("missing: %v, want the end of the mapping at %v", m, dirty)
	}
}

func openELF(t *testing.T, path string) *elf.File {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// compareLoads: everything in the kernel's core is in ours.
func compareLoads(t *testing.T, ours, kernel *elf.File) {
	t.Helper()
	compared, whole := int64(0), 0
	for _, k := range kernel.Progs {
		if k.Type != elf.PT_LOAD || k.Vaddr >= 1<<63 {
			continue
		}
		whole++
		if held := heldBy(ours, k.Vaddr, k.Vaddr+k.Memsz, k.Flags); held < k.Memsz {
			t.Errorf("segment at %#x, %v: %#x of %#x bytes are in segments of ours", k.Vaddr, k.Flags, held, k.Memsz)
		}
		want := make([]byte, min(k.Filesz, 1<<24))
		if _, err := k.ReadAt(want, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		for at := uint64(0); at < uint64(len(want)); at += corePage {
			page := want[at:min(at+corePage, uint64(len(want)))]
			got, ok := readELF(ours, k.Vaddr+at, len(page))
			if !ok && bytes.Equal(page, zeroPage[:]) {
				continue // the kernel has zeros where it cannot read
			}
			if !ok || !bytes.Equal(got, page) {
				t.Errorf("page %#x differs, or is not there (%v)", k.Vaddr+at, ok)
			}
			compared += int64(len(page))
		}
	}
	if compared < 100*corePage || whole < 20 {
		t.Errorf("only %d bytes of %d segments were compared", compared, whole)
	}
}

// heldBy counts the bytes of segments with the same rights.
func heldBy(f *elf.File, start, end uint64, flags elf.ProgFlag) uint64 {
	held := uint64(0)
	for _, p := range f.Progs {
		if low, high := max(start, p.Vaddr), min(end, p.Vaddr+p.Memsz); p.Type == elf.PT_LOAD && p.Flags == flags && low < high {
			held += high - low
		}
	}
	return held
}

func readELF(f *elf.File, addr uint64, n int) ([]byte, bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Vaddr <= addr && addr+uint64(n) <= p.Vaddr+p.Filesz {
			b := make([]byte, n)
			_, err := p.ReadAt(b, int64(addr-p.Vaddr))
			return b, err == nil
		}
	}
	return nil, false
}

type coreNote struct {
	owner string
	kind  uint32
	desc  []byte
}

func notesOf(t *testing.T, f *elf.File) []coreNote {
	var list []coreNote
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		b, err := io.ReadAll(p.Open())
		if err != nil {
			t.Fatal(err)
		}
		for len(b) >= 12 {
			name, desc, kind := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint32(b[8:])
			at := 12 + (name+3)&^3
			list = append(list, coreNote{string(b[12 : 12+name-1]), kind, b[at : at+desc]})
			b = b[at+(desc+3)&^3:]
		}
	}
	return list
}

// compareNotes: threads other than the first may be in another order, and processor times
// advance.
func compareNotes(t *testing.T, ours, kernel *elf.File) {
	t.Helper()
	byThread := func(list []coreNote) map[string][]byte {
		m, tid := map[string][]byte{}, uint32(0)
		for _, n := range list {
			if n.owner == "CORE" && n.kind == notePrstatus {
				tid = binary.LittleEndian.Uint32(n.desc[32:])
				clear(n.desc[36:40]) // the kernel has the parent's thread
				clear(n.desc[48:112])
			}
			m[fmt.Sprintf("%s %#x of %d", n.owner, n.kind, tid)] = n.desc
		}
		return m
	}
	a, b := notesOf(t, ours), notesOf(t, kernel)
	for i := range 5 {
		if a[i].kind != b[i].kind {
			t.Errorf("note %d is %#x, the kernel's %#x", i, a[i].kind, b[i].kind)
		}
	}
	got, want := byThread(a), byThread(b)
	const layoutOfXState = "LINUX 0x205" // NT_X86_XSAVE_LAYOUT says where the kernel has components
	for name, desc := range want {
		if strings.HasPrefix(name, layoutOfXState) {
			continue
		}
		mine, ok := got[name]
		if strings.HasPrefix(name, fmt.Sprintf("CORE %#x", notePrpsinfo)) {
			mine, desc = slices.Clone(mine), slices.Clone(desc)
			for _, b := range [][]byte{mine, desc} {
				clear(b[8:16]) // flags such as PF_DUMPCORE
				clear(b[28:32])
			}
		}
		if !ok || !bytes.Equal(mine, desc) {
			t.Errorf("note %s:\n% x, the kernel's\n% x", name, mine, desc)
		}
	}
	if len(want) < 4*3+4 {
		t.Errorf("only %d notes were compared", len(want))
	}
}

// Our own reader, gdb and elfutils find the same in both.
func TestCoreForReaders(t *testing.T) {
	ours, kernel, _, c := bothCores(t)
	a, err := image.OpenCore(ours, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if len(a.Limits) != 1 || !strings.Contains(a.Limits[0].Text, "2 of 4") || len(a.Threads) != 4 || a.Failing != 0 || a.Threads[0].Signal == nil || a.Threads[0].Signal.Number != 11 {
		t.Errorf("limits %v, %d threads, failing %d", a.Limits, len(a.Threads), a.Failing)
	}
	for name, want := range map[string]string{
		"touched": "touched", "forbidden": "forbidden", "huge": "huge", "shared": "shared", "memfd": "memfd", "dirty": "dirty",
		"untouched": "\x00", "dontdump": "", "file": "",
	} {
		b := make([]byte, len(want))
		_, err := a.ReadMemory(c.marks[name]+corePage, b)
		if want == "" {
			_, err = a.ReadMemory(c.marks[name]+corePage, make([]byte, 1))
		}
		if want == "" && err == nil || want != "" && (err != nil || string(b) != want) {
			t.Errorf("%s at %v: %q, %v", name, c.marks[name], b, err)
		}
	}
	b := make([]byte, 6)
	if _, err := a.ReadMemory(c.marks["huge"]+1<<31, b); err != nil || string(b) != "middle" {
		t.Errorf("the middle of 4 GiB: %q, %v", b, err)
	}
	for _, tool := range [][]string{
		{"gdb", "-nx", "-batch", "-ex", "thread apply all bt", "-ex", "info registers", "-ex", "info proc mappings", c.exe, "-c"},
		{"eu-stack", "--executable", c.exe, "--core"},
	} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			t.Logf("no %s", tool[0])
			continue
		}
		x, y := toolSays(t, tool, ours), toolSays(t, tool, kernel)
		if x != y || !strings.Contains(x, "main") {
			t.Errorf("%s says of ours\n%s\nand of the kernel's\n%s", tool[0], x, y)
		}
	}
}

// toolSays returns the output of a tool, with the threads in the order of their ids.
func toolSays(t *testing.T, tool []string, core string) string {
	out, err := exec.Command(tool[0], append(slices.Clone(tool[1:]), core)...).Output()
	if err != nil {
		t.Fatalf("%v: %v", tool, err)
	}
	text := regexp.MustCompile(`(?m)^Thread \d+ \(`).ReplaceAllString(string(out), "TID (")
	parts := strings.Split(text, "\nTID ")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts[1:])
	head := strings.Split(parts[0], "\n")
	slices.Sort(head) // [New LWP ...]
	return strings.Join(append(head, parts[1:]...), "\n")
}

// Where the kernel has no scan of page tables, the entries of the page map agree.
func TestTouchedRanges(t *testing.T) {
	const pages = 3000
	b, err := unix.Mmap(-1, 0, pages*corePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil {
		t.Logf("huge pages cannot be refused: %v", err)
	}
	start := evidence.Addr(uintptr(unsafe.Pointer(&b[0])))
	var want []Range
	for i := 1; i < pages; i += 2 + i%5 {
		b[i*corePage] = 1
		want = join(want, Range{start + evidence.Addr(i*corePage), start + evidence.Addr((i+1)*corePage)})
	}
	r := Range{start, start + pages*corePage}
	scanned, err := touchedRanges(os.Getpid(), r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries, err := readPagemap(f, r)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(scanned, want) || !slices.Equal(entries, want) || len(want) < 600 {
		t.Errorf("want %d ranges, the scan has %d, the entries %d", len(want), len(scanned), len(entries))
	}
}

// Unreadable parts are cut out of the segments as long as there are spare headers. Then
// segments end at them.
func TestCoreWithoutMissing(t *testing.T) {
	w := &coreWriter{result: new(CoreResult)}
	const n = spareHeaders + 10
	s := coreSegment{Range: Range{0x10000, 0x10000 + 4*n*corePage}, offset: 0x1000, size: 4 * n * corePage}
	after := coreSegment{Range: Range{s.End, s.End + corePage}, offset: 0x100000, size: corePage}
	for i := range evidence.Addr(n) {
		at := s.Start + (4*i+1)*corePage
		w.result.Missing = append(w.result.Missing, MissingMemory{Range: Range{at, at + corePage}})
	}
	got := w.withoutMissing([]coreSegment{s, after})
	last := s.Start
	for i, x := range got {
		if x.Start != last || x.End <= x.Start || x.size > uint64(x.End-x.Start) {
			t.Fatalf("segment %d is %v, %#x bytes, after %v", i, x.Range, x.size, last)
		}
		if x.size > 0 && x.Start < s.End && x.offset != s.offset+int64(x.Start-s.Start) {
			t.Errorf("segment %d at %#x has offset %#x", i, x.Start, x.offset)
		}
		for _, m := range w.result.Missing {
			if m.Start < x.Start+evidence.Addr(x.size) && m.End > x.Start {
				t.Errorf("segment %d has contents for %v", i, m.Range)
			}
		}
		last = x.End
	}
	if last != after.End || got[len(got)-1].size != corePage || len(got) > 2+spareHeaders || len(got) < spareHeaders {
		t.Errorf("%d segments up to %v", len(got), last)
	}
}

// More segments than the header's field can count are counted by a section
// header (elf(5), PN_XNUM).
func TestCoreManySegments(t *testing.T) {
	const n = 70000
	segments := make([]coreSegment, n)
	for i := range segments {
		at := evidence.Addr(i+1) * 2 * corePage
		segments[i] = coreSegment{Range: Range{at, at + corePage}, flags: uint32(elf.PF_R)}
	}
	headers := coreHeaders(segments, 0, 0)
	if got := binary.LittleEndian.Uint16(headers[56:]); got != elfManyProgs {
		t.Errorf("the header counts %d", got)
	}
	if got := binary.LittleEndian.Uint32(headers[binary.LittleEndian.Uint64(headers[40:])+44:]); got != n+1 {
		t.Errorf("the section header counts %d, want %d", got, n+1)
	}
	if got, want := len(headers), elfHeader+elfSection+(n+1)*elfProgram; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// A process that has ended has no core, and memory read before that does not make one.
func TestCoreOfTheDead(t *testing.T) {
	dir := t.TempDir()
	exe := crashtest.Compile(t, crashtest.Program{Source: "memory.c", Text: coreProgram, Flags: []string{"-pthread"}})
	f, err := os.Create(filepath.Join(dir, "ours"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var failed error
	err = ptrace.OnThread(func() error {
		c, err := startCrashing(exe, dir)
		if err != nil {
			return err
		}
		defer c.stdin.Close()
		if err := unix.Kill(c.pid, unix.SIGKILL); err != nil {
			return err
		}
		for _, t := range slices.Backward(c.threads) {
			if err := waitEnd(t.TID); err != nil {
				return err
			}
		}
		_, failed = WriteCore(f, CoreOptions{PID: c.pid, Threads: c.threads, Source: testRegsets{}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed == nil || !strings.Contains(failed.Error(), "core of process") {
		t.Errorf("its core: %v", failed)
	}
}
