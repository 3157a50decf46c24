package object

import (
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"diagnose/internal/crashtest"
)

func TestEverySymbolIsFound(t *testing.T) {
	for _, path := range []string{systemLibc(t), build(t), withoutSections(t, systemLibc(t)), build(t, "-Wl,--hash-style=sysv")} {
		f := open(t, path)
		table := f.symbols.own().dynamic
		if table == nil || table.hash == nil {
			t.Fatalf("%s: no dynamic symbols or no hash", path)
		}
		found := 0
		for i := range table.count() {
			s := table.symbolAt(i)
			if !s.defined() || !table.isName(&s) {
				continue
			}
			found++
			want := string(table.rawName(&s))
			got, ok := f.SymbolNamed(want)
			if !ok || got.Name != want {
				t.Errorf("%s: SymbolNamed(%q) is %+v %v", path, want, got, ok)
			}
			if !s.addressable() || s.size == 0 {
				continue
			}
			got, ok = f.SymbolAt(s.value + s.size - 1)
			if !ok || got.Value < s.value || got.Value+got.Size < s.value+s.size {
				t.Errorf("%s: SymbolAt the end of %s (%#x) is %+v %v", path, want, s.value, got, ok)
			}
		}
		if strings.Contains(path, "libc") && found < 1000 {
			t.Errorf("%s: only %d symbols", path, found)
		}
		if s, ok := f.SymbolNamed("no_such_symbol_anywhere"); ok {
			t.Errorf("%s: found %+v", path, s)
		}
	}
}

func TestSymbolKinds(t *testing.T) {
	f := open(t, build(t))
	for name, kind := range map[string]SymbolKind{"middle": SymbolFunc, "hidden_helper": SymbolFunc, "filled": SymbolObject, "local_to_thread": SymbolTLS} {
		if s, ok := f.SymbolNamed(name); !ok || s.Kind != kind {
			t.Errorf("%s is %+v %v, want kind %d", name, s, ok, kind)
		}
	}
	for _, name := range []string{"program.c", "puts", "", "GLIBC_2.2.5"} {
		if s, ok := f.SymbolNamed(name); ok {
			t.Errorf("%q, which is no definition, is %+v", name, s)
		}
	}
	libc := open(t, systemLibc(t))
	for name, kind := range map[string]SymbolKind{"memcpy": SymbolFunc, "write": SymbolFunc, "environ": SymbolObject, "errno": SymbolTLS} {
		if s, ok := libc.SymbolNamed(name); ok && s.Kind != kind {
			t.Errorf("%s is %+v, want kind %d", name, s, kind)
		}
	}
}

// TestDefaultVersion: libc has two versions of memcpy, and the default one is
// not always the first of the chain.
func TestDefaultVersion(t *testing.T) {
	source := `
int old(void) { return 1; }
int new(void) { return 2; }
__asm__(".symver old,f@V1");
__asm__(".symver new,f@@V2");
`
	dir := t.TempDir()
	script := filepath.Join(dir, "versions")
	writeFile(t, script, []byte("V1 { global: f; local: *; };\nV2 { global: f; } V1;\n"))
	path := crashtest.Compile(t, crashtest.Program{Source: "versions.c", Text: source, Flags: []string{"-shared", "-fPIC", "-Wl,--version-script=" + script}})
	stripped := filepath.Join(dir, "stripped.so")
	tool(t, "objcopy", "--strip-all", path, stripped)
	want, ok := open(t, path).SymbolNamed("new")
	got, ok2 := open(t, stripped).SymbolNamed("f")
	if !ok || !ok2 || got.Value != want.Value || got.Name != "f" {
		t.Errorf("f is %+v %v, want the value of new, %#x", got, ok2, want.Value)
	}
}

const labels = `
	.text
	.globl sized
	.type sized, @function
sized:
	nop; nop; nop; nop
inner_label:
	nop; nop; nop; nop
	.size sized, .-sized
	.skip 16, 0x90
bare:
	.skip 16, 0x90
.weak alias_b
alias_b:
	.globl alias_a
alias_a:
.Llocal:
	.skip 8, 0x90
	.globl last
	.type last, @function
last:
	nop
	.size last, .-last
	.skip 16, 0x90
	.globl main
	.type main, @function
main:
	xor %eax, %eax
	ret
	.size main, .-main
	.section .note.GNU-stack,"",@progbits
`

func TestSizelessSymbols(t *testing.T) {
	path := crashtest.Compile(t, crashtest.Program{Source: "labels.s", Text: labels, Compiler: "gcc"})
	f := open(t, path)
	at := func(name string) uint64 {
		s, ok := f.SymbolNamed(name)
		if !ok {
			t.Fatalf("no symbol %s", name)
		}
		return s.Value
	}
	for _, c := range []struct {
		addr uint64
		want string
	}{
		{at("sized") + 5, "sized"}, // the label inside has no size
		{at("sized") + 12, "inner_label"},
		{at("bare"), "bare"},
		{at("bare") + 15, "bare"},
		{at("alias_a") + 7, "alias_b"}, // the later name, as in gdb
		{at("last"), "last"},
		{at("last") + 3, ""}, // after a sized symbol no name is claimed
		{at("main"), "main"},
	} {
		if got, _ := f.SymbolAt(c.addr); got.Name != c.want {
			t.Errorf("%#x is in %q, want %q", c.addr, got.Name, c.want)
		}
	}
	compareWithGDB(t, path, "")
}

// TestAgainstGDB compares names of random addresses with `info symbol`.
func TestAgainstGDB(t *testing.T) {
	compareWithGDB(t, build(t), "")
	compareWithGDB(t, systemLibc(t), "/nonexistent")
	compareWithGDB(t, systemLibc(t), "/usr/lib/debug")
}

// compareWithGDB makes gdb search debugDir for separate debug files, and our
// finder too if debugDir exists.
func compareWithGDB(t *testing.T, path, debugDir string) {
	t.Helper()
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip(&crashtest.UnsupportedError{What: "gdb is not installed"})
	}
	f := open(t, path)
	if _, err := os.Stat(debugDir); err == nil && debugDir != "" {
		debug, err := new(Finder).Debug(f)
		if err != nil {
			t.Fatal(err)
		}
		if debug != f {
			f.AddSymbols(debug)
		}
	}
	addrs := randomAddresses(f, 200)
	script := filepath.Join(t.TempDir(), "script")
	var lines strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&lines, "info symbol %#x\n", a)
	}
	writeFile(t, script, []byte(lines.String()))
	out := tool(t, "gdb", "-nx", "-batch", "-iex", "set debug-file-directory "+debugDir, "-iex", "set debuginfod enabled off", "-x", script, path)
	compareAnswers(t, f, addrs, out)
}

func randomAddresses(f *File, each int) []uint64 {
	random := rand.New(rand.NewPCG(1, 2))
	var addrs []uint64
	for i := range f.sections {
		s := &f.sections[i]
		if s.Flags&uint64(elf.SHF_ALLOC) == 0 || s.Flags&uint64(elf.SHF_TLS) != 0 || s.Size == 0 {
			continue
		}
		for range each {
			addrs = append(addrs, s.Addr+random.Uint64N(s.Size))
		}
	}
	return addrs
}

func compareAnswers(t *testing.T, f *File, addrs []uint64, out string) {
	t.Helper()
	var answers []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "No symbol matches") {
			answers = append(answers, "")
		} else if name, _, ok := strings.Cut(line, " in section "); ok {
			answers = append(answers, name)
		}
	}
	if len(answers) != len(addrs) {
		t.Fatalf("%s: gdb gave %d answers to %d questions", f.Path(), len(answers), len(addrs))
	}
	named := 0
	for i, addr := range addrs {
		s, _ := f.SymbolAt(addr)
		got := s.Name
		if addr != s.Value && s.Name != "" {
			got += fmt.Sprintf(" + %d", addr-s.Value)
		}
		if got != "" {
			named++
		}
		if !sameAnswer(got, answers[i]) {
			t.Errorf("%s: %#x is %q, gdb says %q", f.Path(), addr, got, answers[i])
		}
	}
	if named < len(addrs)/20 {
		t.Errorf("%s: only %d of %d addresses have names", f.Path(), named, len(addrs))
	}
}

// sameAnswer allows for quirks of gdb: it treats names such as "f.part.0" and
// "f@got.plt" as Ada's and rewrites them, and of versions of a symbol with
// different sizes it may miss the one that covers the address.
func sameAnswer(ours, gdbs string) bool {
	gdbs = strings.Replace(gdbs, "@got[plt]", "@got.plt", 1)
	if ours == gdbs || strings.HasPrefix(ours, "sys_") || strings.HasPrefix(ours, "_sys_") {
		return true
	}
	name, offset, _ := strings.Cut(ours, " + ")
	if strings.HasSuffix(name, "@got") || strings.HasPrefix(gdbs, "*ABS*@got.plt") {
		return true // gdb names only the words that stubs jump through, and leaves addends out
	}
	other, otherOffset, _ := strings.Cut(gdbs, " + ")
	return offset == otherOffset && other != "" && strings.TrimRight(name, "0123456789") == other+"."
}

// TestConcurrentLookups is for the race detector.
func TestConcurrentLookups(t *testing.T) {
	f := open(t, systemLibc(t))
	debug, err := new(Finder).Debug(f)
	if err != nil {
		t.Fatal(err)
	}
	addrs := randomAddresses(f, 5)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for _, a := range addrs {
				f.SymbolAt(a)
			}
			f.SymbolNamed("main_arena")
			f.BuildID()
		})
	}
	f.AddSymbols(debug)
	wait.Wait()
}

// TestPrelinkedShift: the separate symbols follow an object that was moved.
func TestPrelinkedShift(t *testing.T) {
	whole := build(t)
	stripped := filepath.Join(t.TempDir(), "stripped")
	tool(t, "strip", "-o", stripped, whole)
	moved := filepath.Join(t.TempDir(), "moved")
	tool(t, "objcopy", "--change-addresses", "0x10000", whole, moved)
	f, debug := open(t, stripped), open(t, moved)
	shift := debug.Section(".text").Addr - f.Section(".text").Addr
	if shift == 0 {
		t.Skip(&crashtest.UnsupportedError{What: "objcopy does not move sections"})
	}
	want, ok := debug.SymbolNamed("middle")
	if !ok {
		t.Fatal("no middle in the moved object")
	}
	f.AddSymbols(debug)
	if got, ok := f.SymbolNamed("middle"); !ok || got.Value != want.Value-shift {
		t.Errorf("middle is %+v %v, want %#x", got, ok, want.Value-shift)
	}
	if got, ok := f.SymbolAt(want.Value - shift + 1); !ok || got.Name != "middle" {
		t.Errorf("SymbolAt is %+v %v", got, ok)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := systemLibc(b)
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

// BenchmarkFirstSymbolAt includes the opening and the index.
func BenchmarkFirstSymbolAt(b *testing.B) {
	path := systemLibc(b)
	known, ok := open(b, path).SymbolNamed("write")
	if !ok {
		b.Fatal("no write")
	}
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := f.SymbolAt(known.Value); !ok {
			b.Fatal("no symbol")
		}
		f.Close()
	}
}

func BenchmarkSymbolAt(b *testing.B) {
	f := open(b, systemLibc(b))
	addr := f.Section(".text").Addr + 0x10000
	for b.Loop() {
		f.SymbolAt(addr)
	}
}
