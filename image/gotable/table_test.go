package gotable

import (
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/evidence"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

const program = `package main

import (
	"fmt"
	"os"
)

type list[T any] struct{ items []T }

func (l *list[T]) add(v T) { l.items = append(l.items, v) }

func half(n int) int { if n == 0 { panic("zero") }; return n / 2 }

func quarter(n int) int { return half(half(n)) }

//go:noinline
func work(n int) int { l := &list[int]{}; l.add(quarter(n)); return l.items[0] }

func main() { fmt.Println(work(len(os.Args))) }
`

// build compiles a program without a position of its own, so that its file has
// all that its memory would have.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", exe}, flags...), source)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GO111MODULE=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return exe
}

// segments is the memory of a program that has not started.
type segments []segment

type segment struct {
	addr uint64
	data []byte
}

func (s segments) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for _, seg := range s {
		if at := uint64(addr) - seg.addr; uint64(addr) >= seg.addr && at < uint64(len(seg.data)) {
			n := copy(p, seg.data[at:])
			if n < len(p) {
				return n, io.ErrUnexpectedEOF
			}
			return n, nil
		}
	}
	return 0, errors.New("not mapped")
}

// load reads a program's segments, the writable ones as areas, and where its
// table is.
func load(t testing.TB, exe string) (s segments, areas []Area, start evidence.Addr, f *elf.File) {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err != nil {
			t.Fatal(err)
		}
		s = append(s, segment{p.Vaddr, data})
		if p.Flags&elf.PF_W != 0 {
			areas = append(areas, Area{evidence.Addr(p.Vaddr), evidence.Addr(p.Vaddr + p.Memsz)})
		}
	}
	return s, areas, evidence.Addr(f.Section(".gopclntab").Addr), f
}

func sectionData(t testing.TB, f *elf.File, name string) []byte {
	t.Helper()
	data, err := f.Section(name).Data()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Names, files and lines are those of debug/gosym, and frame sizes those of
// DWARF, for every function and many addresses in each.
func TestAgainstOtherReaders(t *testing.T) {
	for _, flags := range [][]string{nil, {"-gcflags=all=-N -l"}} {
		mem, areas, start, f := load(t, build(t, flags...))
		table, err := Open(mem, start, areas)
		if err != nil {
			t.Fatal(err)
		}
		lines := gosym.NewLineTable(sectionData(t, f, ".gopclntab"), uint64(table.Module.Text))
		symbols, err := gosym.NewTable(nil, lines)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := frame.Parse(sectionData(t, f, ".debug_frame"), binary.LittleEndian, 0, 8, 0)
		if err != nil {
			t.Fatal(err)
		}
		inlined, framed := 0, 0
		for i := range symbols.Funcs {
			want := &symbols.Funcs[i]
			for pc := want.Entry; pc < want.End; pc += 97 {
				in, sized := compare(t, table, symbols, entries, want, pc)
				inlined, framed = inlined+in, framed+sized
			}
		}
		if len(symbols.Funcs) < 500 || framed < 3000 || flags == nil && inlined < 500 {
			t.Errorf("%v: only %d functions, %d frame sizes, %d inlined calls were compared", flags, len(symbols.Funcs), framed, inlined)
		}
	}
}

func compare(t *testing.T, table *Table, symbols *gosym.Table, entries frame.FrameDescriptionEntries, want *gosym.Func, pc uint64) (inlined, framed int) {
	t.Helper()
	fn, ok, err := table.FunctionAt(evidence.Addr(pc))
	if !ok || err != nil || fn.Name != want.Name || uint64(fn.Begin) != want.Entry {
		t.Fatalf("%#x: %q from %v (%v, %v), want %q from %#x", pc, fn.Name, fn.Begin, ok, err, want.Name, want.Entry)
	}
	calls, err := table.CallsAt(&fn, evidence.Addr(pc))
	if err != nil {
		t.Fatal(err)
	}
	file, line, _ := symbols.PCToLine(pc)
	if c := calls[0]; c.File != file || c.Line != line && line > 0 {
		t.Errorf("%#x in %s: %s:%d, want %s:%d", pc, fn.Name, c.File, c.Line, file, line)
	}
	if last := calls[len(calls)-1]; last.Function != fn.Name || last.Inlined {
		t.Errorf("%#x: the outermost call is %+v", pc, last)
	}
	size, err := table.FrameSize(&fn, evidence.Addr(pc))
	if entry, dwarfErr := entries.FDEForPC(pc); dwarfErr == nil {
		ctx, dwarfErr := entry.EstablishFrame(pc)
		if dwarfErr != nil {
			t.Fatal(dwarfErr)
		}
		if err != nil || size+8 != ctx.CFA.Offset {
			t.Errorf("%#x in %s: frame size %d, %v; DWARF has %d", pc, fn.Name, size, err, ctx.CFA.Offset-8)
		}
		framed = 1
	}
	return len(calls) - 1, framed
}

// The calls that the compiler inlined are there with the lines of each.
func TestInlined(t *testing.T) {
	mem, areas, start, _ := load(t, build(t, "-ldflags=-s -w"))
	table, err := Open(mem, start, areas)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range table.count {
		begin, _, err := table.entry(i)
		if err != nil {
			t.Fatal(err)
		}
		fn, ok, err := table.FunctionAt(begin)
		if err != nil || !ok || fn.Name != "main.work" {
			continue
		}
		for pc := fn.Begin; pc < fn.End; pc++ {
			calls, err := table.CallsAt(&fn, pc)
			if err != nil {
				t.Fatal(err)
			}
			if len(calls) == 3 && calls[0].Function == "main.half" && calls[1].Function == "main.quarter" && calls[0].Line == 12 && calls[1].Line == 14 && calls[2].Line == 17 {
				seen["half"] = true
			}
			if len(calls) == 2 && strings.HasPrefix(calls[0].Function, "main.(*list[") && calls[0].Line == 10 && calls[1].Line == 17 {
				seen["add"] = true
			}
		}
	}
	if !seen["half"] || !seen["add"] {
		t.Errorf("inlined calls seen: %v", seen)
	}
}

// A header that no runtime.firstmoduledata describes is not taken for a table.
func TestUnproven(t *testing.T) {
	mem, areas, start, _ := load(t, build(t, "-ldflags=-s -w"))
	if _, err := Open(mem, start, nil); err == nil {
		t.Error("a table was opened without its record")
	}
	if _, err := Open(mem, start+8, areas); err == nil {
		t.Error("a table was opened where none is")
	}
}

func FuzzTable(f *testing.F) {
	mem, areas, start, _ := load(f, build(f, "-ldflags=-s -w"))
	table, err := Open(mem, start, areas)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(8), uint64(0xffffffff), uint16(100))
	f.Add(uint64(table.functions-start)+16, uint64(1), uint16(3))
	f.Add(uint64(table.values-start)+40, ^uint64(0), uint16(700))
	f.Fuzz(func(t *testing.T, offset, word uint64, where uint16) {
		damaged := make(segments, len(mem))
		for i, s := range mem {
			damaged[i] = s
			if at := uint64(start) - s.addr + offset; at+8 <= uint64(len(s.data)) && uint64(start) >= s.addr && at >= uint64(start)-s.addr {
				damaged[i].data = append([]byte(nil), s.data...)
				binary.LittleEndian.PutUint64(damaged[i].data[at:], word)
			}
		}
		table, err := Open(damaged, start, areas)
		if err != nil {
			return
		}
		step := max(1, uint64(table.Module.Code.End-table.Module.Code.Start)/64)
		for i := range uint64(64) {
			pc := table.Module.Code.Start + evidence.Addr(i*step+uint64(where))
			fn, ok, err := table.FunctionAt(pc)
			if !ok || err != nil {
				continue
			}
			table.FrameSize(&fn, pc)
			table.CallsAt(&fn, pc)
		}
	})
}
