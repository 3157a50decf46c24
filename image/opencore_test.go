package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

func TestCoreOfThreads(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"pie", nil},
		{"no-pie", []string{"-no-pie"}},
		{"static", []string{"-static"}},
		{"static-pie", []string{"-static-pie"}},
		{"O2", []string{"-O2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe := threadsProgram(t, c.flags...)
			p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
			checkThreads(t, p, exe)
			checkNames(t, p, exe)
			if list := severe(p); len(list) > 0 {
				t.Errorf("severe limits of a whole core: %q", list)
			}
		})
	}
}

func checkThreads(t *testing.T, p *Process, exe string) {
	t.Helper()
	if len(p.Threads) != 3 || p.Failing != 0 || p.Program.Threads != 3 {
		t.Fatalf("%d threads, failing %d", len(p.Threads), p.Failing)
	}
	s := p.Threads[0].Signal
	want := evidence.Signal{Number: 11, Name: "SIGSEGV", Code: 1, CodeName: "SEGV_MAPERR", Addr: 0x18, HasAddr: true}
	if s == nil || *s != want {
		t.Errorf("signal %+v, want %+v", s, want)
	}
	if p.Program.Exe != exe || p.Exe == nil || p.Exe.File != exe || p.Program.Command != "threads" || p.Program.Args != exe {
		t.Errorf("program %+v", p.Program)
	}
	if id := buildID(t, exe); p.Program.BuildID != id {
		t.Errorf("build-id %s, want %s", p.Program.BuildID, id)
	}
	values := map[uint64]bool{}
	local := tlsOffset(t, exe, "local")
	for i := range p.Threads {
		thread := &p.Threads[i]
		older := 0 // threads that were created before it
		for k := range p.Threads {
			if p.Threads[k].Ref.TID < thread.Ref.TID {
				older++
			}
		}
		if thread.Ref.Number != older+1 || thread.Registers.Vector == nil {
			t.Errorf("thread %d: %+v", i, thread.Ref)
		}
		block, err := p.ThreadLocal(thread, p.Exe)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Uint64(p, block+evidence.Addr(local))
		if err != nil {
			t.Fatal(err)
		}
		values[v] = true
	}
	if !values[1] || !values[10] || !values[11] {
		t.Errorf("thread-local values %v, want 1, 10 and 11", values)
	}
}

func checkNames(t *testing.T, p *Process, exe string) {
	t.Helper()
	pc := p.Threads[0].Registers.PC()
	calls := p.Symbolize(pc, AtInstruction)
	site := calls[len(calls)-1].Site
	if site.Function != "fails" || site.Module != exe || filepath.Base(site.File) != "threads.c" ||
		site.Line != lineOf(t, threadsSource, "fails here") {
		t.Errorf("the failing site is %+v", site)
	}
	if want := uint64(pc) - p.Exe.Bias; uint64(site.ModuleOffset) != want {
		t.Errorf("module offset %v, want %#x", site.ModuleOffset, want)
	}
	if v := global(t, p, "marker"); v != 0x5eed {
		t.Errorf("marker is %#x", v)
	}
	// The core omits the code: this is read from the file.
	inMemory := make([]byte, 2)
	if _, err := p.ReadMemory(pc, inMemory); err != nil {
		t.Fatal(err)
	}
	inFile := make([]byte, 2)
	if _, err := p.Exe.Object.ReadAddr(inFile, p.Exe.LinkAddr(pc)); err != nil || !bytes.Equal(inMemory, inFile) {
		t.Errorf("code %x in memory, %x in the file (%v)", inMemory, inFile, err)
	}
	if m := p.ModuleAt(pc); m != p.Exe || !m.Contains(pc) || m.Contains(m.End) {
		t.Errorf("module at the failing pc is %+v", m)
	}
}

// tlsOffset returns a thread-local variable's offset in its object's block.
func tlsOffset(t *testing.T, exe, name string) uint64 {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == name && elf.ST_TYPE(s.Info) == elf.STT_TLS {
			return s.Value
		}
	}
	t.Fatalf("%s has no thread-local %s", exe, name)
	return 0
}

func TestThreadLocalOfLibrary(t *testing.T) {
	library := crashtest.Compile(t, crashtest.Program{Source: "tlib.c", Output: "libtlib.so", Flags: []string{"-shared", "-fPIC"},
		Text: "__thread long inlib = 77; long *where(void) { return &inlib; }"})
	exe := crashtest.Compile(t, crashtest.Program{Source: "user.c", Flags: []string{"-ldl", "-DLIB=\"" + library + "\""}, Text: `
#include <dlfcn.h>
__thread int own = 5;
long *found;
int main(void)
{
	void *h = dlopen(LIB, RTLD_NOW);
	long *(*where)(void) = (long *(*)(void))dlsym(h, "where");
	found = where();
	*found = 78;
	*(volatile int *)8 = own;
}`})
	p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
	symbol, ok := p.SymbolNamed("found")
	if !ok {
		t.Fatal("no symbol found")
	}
	want, err := Uint64(p, symbol.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Modules {
		if m.Path != library {
			continue
		}
		block, err := p.ThreadLocal(&p.Threads[0], m)
		if err != nil || uint64(block)+tlsOffset(t, library, "inlib") != want {
			t.Errorf("block at %v (%v), the variable was at %#x", block, err, want)
		}
		return
	}
	t.Errorf("no module %s", library)
}

// Libraries linked at start have their blocks at one distance from each thread pointer. A library that is loaded where another was before gets
// its index, and threads that have not touched it since still have the block of the other.
func TestThreadLocalOfLibraries(t *testing.T) {
	library := func(name, text string) string {
		return crashtest.Compile(t, crashtest.Program{Source: name + ".c", Output: "lib" + name + ".so", Flags: []string{"-shared", "-fPIC"}, Text: text})
	}
	linked := library("linked", "__thread long at_start = 1; long *start_at(void) { return &at_start; }")
	before := library("before", "__thread long local = 1; long *where(void) { return &local; }")
	after := library("after", "__thread long other[9], local = 1; long *where(void) { return &local; }")
	exe := crashtest.Compile(t, crashtest.Program{Source: "loads.c", Text: `
#include <dlfcn.h>
#include <pthread.h>
long *start_at(void), *at_start[2], *found[2];
typedef long *(*finder)(void);
static finder where;
static pthread_barrier_t barrier;
static void *work(void *p)
{
	at_start[1] = start_at();
	found[1] = where();
	pthread_barrier_wait(&barrier);
	for (;;)
		pthread_barrier_wait(&barrier);
	return p;
}
int main(void)
{
	pthread_t t;
	void *h = dlopen(BEFORE, RTLD_NOW);
	where = (finder)dlsym(h, "where");
	pthread_barrier_init(&barrier, 0, 2);
	pthread_create(&t, 0, work, 0);
	pthread_barrier_wait(&barrier);
	dlclose(h);
	h = dlopen(AFTER, RTLD_NOW);
	at_start[0] = start_at();
	found[0] = ((finder)dlsym(h, "where"))();
	*(volatile int *)8 = 1;
}`, Flags: []string{"-pthread", "-ldl", "-DBEFORE=\"" + before + "\"", "-DAFTER=\"" + after + "\"", linked}})
	p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
	array := func(name string, i int) uint64 {
		symbol, ok := p.SymbolNamed(name)
		if !ok {
			t.Fatalf("no symbol %s", name)
		}
		v, err := Uint64(p, symbol.Addr+evidence.Addr(8*i))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, m := range p.Modules {
		for i := range p.Threads {
			thread := &p.Threads[i]
			number := 1
			if thread.Ref.TID == p.FailingThread().Ref.TID {
				number = 0
			}
			switch block, err := p.ThreadLocal(thread, m); {
			case m.Path == linked:
				if err != nil || uint64(block)+tlsOffset(t, linked, "at_start") != array("at_start", number) {
					t.Errorf("at_start of thread %d: block %v, %v", number, block, err)
				}
			case m.Path == after && number == 0:
				if err != nil || uint64(block)+tlsOffset(t, after, "local") != array("found", 0) {
					t.Errorf("local of the library that was touched: block %v, %v", block, err)
				}
			case m.Path == after && !errors.Is(err, errUntouched):
				t.Errorf("a thread that has not touched the library has a block at %v (%v); that of the unloaded one was near %#x", block, err, array("found", 1))
			}
		}
	}
	if p.ModuleOfLink(0) != p.Exe || p.ModuleOfLink(1) != nil {
		t.Error("modules of link maps")
	}
}

func TestDeletedExecutable(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "gone.c",
		Text: "#include <unistd.h>\nint main(int c, char **v) { unlink(v[0]); *(volatile int *)8 = 1; }"})
	kept := path(t, "kept")
	copyFile(t, exe, kept)
	core := crashtest.Core(t, exe, crashtest.Run{})
	p := open(t, core, Options{})
	if p.Exe == nil || p.Exe.Object != nil {
		t.Fatalf("executable %+v", p.Exe)
	}
	wantLimit(t, p, true, "no file was found for")
	if site := p.Symbolize(p.Threads[0].Registers.PC(), AtInstruction)[0].Site; site.ModuleOffset == 0 || site.Function != "" {
		t.Errorf("site without a file: %+v", site)
	}
	if named := open(t, core, Options{Exe: kept}); named.Exe.Object == nil {
		t.Errorf("--exe was not taken: %+v", named.AllLimits())
	}
	copyFile(t, kept, filepath.Join(filepath.Dir(core), "gone"))
	if beside := open(t, core, Options{}); beside.Exe.Object == nil {
		t.Errorf("the file next to the core was not taken: %+v", beside.AllLimits())
	}
}

func TestMismatchedExecutable(t *testing.T) {
	crashtest.NeedKernelCores(t)
	exe := threadsProgram(t)
	core := crashtest.Core(t, exe, crashtest.Run{})
	ran := buildID(t, exe)
	copyFile(t, threadsProgram(t, "-O1", "-DOTHER"), path(t, "other"))
	other := threadsProgram(t, "-O2", "-fno-plt")
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	copyFile(t, other, exe)
	now := buildID(t, exe)
	if now == ran {
		t.Fatal("the two programs have one build-id")
	}
	p := open(t, core, Options{})
	wantLimit(t, p, true, ran, now)
	if p.Exe == nil || p.Exe.Object != nil || p.Exe.BuildID != ran {
		t.Fatalf("executable %+v", p.Exe)
	}
	if site := p.Symbolize(p.Threads[0].Registers.PC(), AtInstruction)[0].Site; site.Function != "" || site.BuildID != ran {
		t.Errorf("named from a wrong file: %+v", site)
	}
	var b [4]byte
	if _, err := p.ReadMemory(p.Threads[0].Registers.PC(), b[:]); err == nil {
		t.Error("code was read from a wrong file")
	}
}

func TestGcore(t *testing.T) {
	gcore, err := exec.LookPath("gcore")
	if err != nil {
		t.Skip("not supported here: gcore is not installed")
	}
	inferior := startWaiting(t)
	base := path(t, "core")
	if out, err := exec.Command(gcore, "-o", base, inferior.pid()).CombinedOutput(); err != nil {
		t.Fatalf("gcore: %v\n%s", err, out)
	}
	p := open(t, base+"."+inferior.pid(), Options{})
	if p.Failing != -1 || len(p.Threads) != 3 || p.Exe == nil || p.Exe.Object == nil {
		t.Errorf("failing %d, %d threads, executable %+v, limits %+v", p.Failing, len(p.Threads), p.Exe, p.AllLimits())
	}
	if v := global(t, p, "marker"); v != 0x5eed {
		t.Errorf("marker is %#x", v)
	}
	// gdb leaves out code that was never written, and so its permissions.
	for i := range p.Threads {
		pc := p.Threads[i].Registers.PC()
		if m := p.MappingAt(pc); m == nil || m.Perms != "r-x" {
			t.Errorf("thread %d runs at %v in %+v", i+1, pc, m)
		}
	}
	if list := severe(p); len(list) > 0 {
		t.Errorf("severe limits: %q", list)
	}
}

// TestReadableByDebugger: a debugger's core does not show whether memory that
// is not writable is readable; the kernel's core does. A debugger's core has
// sections. The kernel's may have one, which counts the segments.
func TestReadableByDebugger(t *testing.T) {
	loads := []programHeader{
		{kind: 1, flags: 4, vaddr: 0x10000, memsz: 0x1000}, {kind: 1, flags: 6, vaddr: 0x20000, memsz: 0x1000},
		{kind: 1, flags: 5, vaddr: 0x30000, memsz: 0x1000}, {kind: 1, flags: 4, vaddr: 0x40000, memsz: 0x1000},
	}
	file := fileNoteBytes(fileMapping{start: 0x40000, end: 0x41000, path: "/data"})
	notes := append(noteBytes("CORE", notePrstatus, prstatusBytes(1, 11, 0x30000, 0x20000)), noteBytes("CORE", noteFile, file)...)
	for sections, want := range map[uint16][]string{0: {"r--", "rw-", "r-x", "r--"}, 1: {"r--", "rw-", "r-x", "r--"}, 6: {"?--", "rw-", "r-x", "r--"}} {
		core := coreBytes(notes, loads)
		binary.LittleEndian.PutUint16(core[60:], sections)
		name := path(t, "core")
		if err := os.WriteFile(name, core, 0o600); err != nil {
			t.Fatal(err)
		}
		p := open(t, name, Options{})
		var got []string
		for i := range p.Mappings {
			got = append(got, p.Mappings[i].Perms)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with %d sections: %v, want %v", sections, got, want)
		}
		if text := p.Place(0x10000).Text; strings.Contains(text, "perhaps not read") != (sections > 1) {
			t.Errorf("with %d sections: %s", sections, text)
		}
	}
}

// hideNote changes the type of the notes of one type.
func hideNote(t *testing.T, core string, kind uint32) string {
	t.Helper()
	data, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseCore(core, data)
	if err != nil {
		t.Fatal(err)
	}
	hidden := false
	for b := c.contents(c.notes[0].offset, c.notes[0].filesz); len(b) > noteHeaderSize; {
		le := binary.LittleEndian
		if le.Uint32(b[8:]) == kind {
			le.PutUint32(b[8:], 0x7fff_0000)
			hidden = true
		}
		b = b[noteHeaderSize+(le.Uint32(b)+3)&^3+(le.Uint32(b[4:])+3)&^3:]
	}
	if !hidden {
		t.Fatalf("no note of kind %#x", kind)
	}
	out := path(t, "core")
	if err := os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCoreWithoutFileNote(t *testing.T) {
	for _, flags := range [][]string{nil, {"-no-pie"}, {"-static"}} {
		exe := threadsProgram(t, flags...)
		core := crashtest.Core(t, exe, crashtest.Run{})
		whole := open(t, core, Options{})
		p := open(t, hideNote(t, core, noteFile), Options{})
		checkThreads(t, p, exe)
		checkNames(t, p, exe)
		for _, m := range whole.Modules {
			found := p.ModuleAt(m.Start)
			if found == nil || found.BuildID != m.BuildID || found.Bias != m.Bias {
				t.Errorf("%v: %s is %+v by the dynamic linker's list", flags, m.Path, found)
			}
		}
		wantLimit(t, p, false, "NT_FILE")
	}
}

func TestCoreWithoutSiginfo(t *testing.T) {
	core := crashtest.Core(t, threadsProgram(t), crashtest.Run{})
	p := open(t, hideNote(t, core, noteSiginfo), Options{})
	s := p.Threads[0].Signal
	if p.Failing != 0 || s == nil || s.Name != "SIGSEGV" || s.HasAddr {
		t.Errorf("failing %d, signal %+v", p.Failing, s)
	}
}

func TestCutEverywhere(t *testing.T) {
	core := tinyCore(t)
	data, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	partial := 0
	cuts := []int{1, 3, 4, 17, 63, 64, 100, 500, 900, 1500, 2000, 3000}
	for at := pageSize; at < len(data); at += pageSize {
		cuts = append(cuts, at, at+1)
	}
	for _, at := range cuts {
		p, err := readCore(core, data[:min(at, len(data))], Options{})
		if err != nil {
			wantFormatError(t, err, core)
			continue
		}
		partial++
		exercise(p)
		if len(severe(p)) == 0 && at < len(data) {
			t.Errorf("cut at %#x of %#x: no severe limit", at, len(data))
		}
		p.Close()
	}
	if partial < 3 {
		t.Errorf("only %d of %d cuts gave a process", partial, len(cuts))
	}
}

func TestTruncatedThreads(t *testing.T) {
	crashtest.NeedKernelCores(t)
	exe := threadsProgram(t)
	core := crashtest.Core(t, exe, crashtest.Run{})
	const kept = 1 << 20
	if err := os.Truncate(core, kept); err != nil {
		t.Fatal(err)
	}
	p := open(t, core, Options{})
	checkNamesOfTruncated(t, p)
	wantLimit(t, p, true, "core truncated at 1.0 MiB of ", "mappings missing or cut")
	if m, ok := readError(p, p.Threads[0].Registers.SP()); !ok || m.Unmapped {
		t.Errorf("the lost stack reads as %+v", m)
	}
}

func readError(p *Process, addr evidence.Addr) (*MemoryError, bool) {
	_, err := Uint64(p, addr)
	return asMemoryError(err)
}

func checkNamesOfTruncated(t *testing.T, p *Process) {
	t.Helper()
	calls := p.Symbolize(p.Threads[0].Registers.PC(), AtInstruction)
	if got := calls[len(calls)-1].Site.Function; got != "fails" {
		t.Errorf("the failing function of a truncated core is %q", got)
	}
}

func TestNotACore(t *testing.T) {
	elfOf := func(change func([]byte)) []byte {
		b := coreBytes(nil, nil)
		change(b)
		return b
	}
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"empty", "empty", nil},
		{"text", "no ELF header", []byte("#!/bin/sh\necho this is not a core file, really not\n")},
		{"short", "truncated within the ELF header", []byte("\x7fELF\x02\x01\x01")},
		{"32 bit", "32-bit", elfOf(func(b []byte) { b[4] = 1 })},
		{"big endian", "big-endian", elfOf(func(b []byte) { b[5] = 2 })},
		{"arm", "EM_AARCH64", elfOf(func(b []byte) { b[18] = 183 })},
		{"executable", "ET_EXEC", elfOf(func(b []byte) { b[16] = 2 })},
		{"no headers", "without program headers", elfOf(func([]byte) {})},
		{"no notes", "no notes", coreBytes(nil, []programHeader{{kind: 1, vaddr: 0x1000, memsz: 0x1000}})},
		{"empty notes", "no thread's registers", coreBytes(make([]byte, 64), nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := path(t, "file")
			if err := os.WriteFile(file, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenCore(file, Options{})
			wantFormatError(t, err, c.want)
			if !strings.Contains(err.Error(), file) {
				t.Errorf("error %q does not name the file", err)
			}
		})
	}
	_, err := OpenCore(t.TempDir(), Options{})
	wantFormatError(t, err, "directory")
	if _, err := OpenCore(path(t, "none"), Options{}); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("a missing file: %v", err)
	}
	_, err = OpenCore("/dev/null", Options{})
	wantFormatError(t, err, "neither a file nor a pipe")
}

func unwrapAll(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}

// TestShrinkingCore truncates the mapped file: a read there raises SIGBUS.
func TestShrinkingCore(t *testing.T) {
	core := crashtest.Core(t, threadsProgram(t), crashtest.Run{})
	p := open(t, core, Options{})
	sp := p.Threads[0].Registers.SP()
	if _, err := Uint64(p, sp); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(core, pageSize); err != nil {
		t.Fatal(err)
	}
	if _, err := Uint64(p, sp); err == nil || !strings.Contains(err.Error(), "shrank") {
		t.Errorf("reading a page that is gone: %v", err)
	}
}

// TestManySegments is a core with more program headers than e_phnum can
// count, whose number is in section header 0.
func TestManySegments(t *testing.T) {
	p, err := readCore("many", manySegments(70_000), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Mappings) != 70_000 {
		t.Errorf("%d mappings", len(p.Mappings))
	}
	last := p.Mappings[len(p.Mappings)-1]
	if m := p.MappingAt(last.Start + 8); m == nil || m.Start != last.Start {
		t.Errorf("the last mapping is found as %+v", m)
	}
}

func BenchmarkManySegments(b *testing.B) {
	data := manySegments(60_000)
	for b.Loop() {
		p, err := readCore("many", data, Options{})
		if err != nil {
			b.Fatal(err)
		}
		p.Place(p.Mappings[30_000].Start)
	}
}

func BenchmarkOpenCore(b *testing.B) {
	core := crashtest.Core(b, threadsProgram(b), crashtest.Run{})
	for b.Loop() {
		p, err := OpenCore(core, Options{})
		if err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}

// Memory that was never written is not in a core, and that is no limit. Memory
// that is partly there is one.
func TestCountMissing(t *testing.T) {
	core := &elfCore{dumpsWritten: true}
	anonymous := Mapping{Start: 0x10000, End: 0x12000, Perms: "rw-"}
	for _, c := range []struct {
		name    string
		core    *elfCore
		mapping Mapping
		told    bool
	}{
		{"never written", core, anonymous, false},
		{"the core has no anonymous memory", &elfCore{}, anonymous, true},
		{"in part", &elfCore{dumpsWritten: true, data: make([]byte, pageSize), loads: []programHeader{{vaddr: 0x10000, filesz: pageSize, memsz: 2 * pageSize}}}, anonymous, true},
		{"read-only", core, Mapping{Start: 0x10000, End: 0x12000, Perms: "r--"}, true},
		{"a file", core, Mapping{Start: 0x10000, End: 0x12000, Perms: "rw-", Path: "/tmp/x"}, true},
	} {
		p := &Process{Mappings: []Mapping{c.mapping}}
		(&coreReader{core: c.core, process: p}).countMissing()
		if told := len(p.Limits) > 0; told != c.told {
			t.Errorf("%s: limits %v", c.name, p.Limits)
		}
	}
}

// Threads are counted in the order in which they were created, even if the
// kernel's ids wrapped around in between.
func TestThreadNumbers(t *testing.T) {
	for _, x := range []struct {
		pid  int
		tids []int
		want []int
	}{
		{100, []int{102, 100, 101}, []int{3, 1, 2}},
		{4194000, []int{310, 4194000, 300, 4194001}, []int{4, 1, 3, 2}},
		{50, []int{103, 101}, []int{2, 1}}, // the first thread ended
		{0, []int{7}, []int{1}},
	} {
		notes := &coreNotes{pid: x.pid}
		for _, tid := range x.tids {
			notes.threads = append(notes.threads, coreThread{tid: tid})
		}
		if got := threadNumbers(notes); !slices.Equal(got, x.want) {
			t.Errorf("threads %v of process %d have the numbers %v, want %v", x.tids, x.pid, got, x.want)
		}
	}
}
