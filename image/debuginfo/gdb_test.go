package debuginfo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// gdbScript writes, for each address, the line and then each function around
// it with the place of its call, which is what gdb's backtrace prints.
const gdbScript = `
import gdb, os
out = open(os.environ['OUT'], 'w')
for l in open(os.environ['PCS']):
    pc = int(l, 0)
    parts = [hex(pc)]
    sal = gdb.find_pc_line(pc)
    pos = '%s:%d' % (sal.symtab.filename if sal.symtab else '', sal.line)
    b = gdb.block_for_pc(pc)
    while b is not None and not b.is_static and not b.is_global:
        f = b.function
        if f is not None:
            parts.append('%s\t%s' % (f.linkage_name, pos))
            pos = '%s:%d' % (f.symtab.filename if f.line else '', f.line)
        b = b.superblock
    out.write('|'.join(parts) + '\n')
out.close()
`

// gdbChains asks gdb for the inline chains at addresses.
func gdbChains(t *testing.T, exe string, pcs []uint64) []string {
	t.Helper()
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip("not supported here: gdb is not installed")
	}
	dir := t.TempDir()
	var list bytes.Buffer
	for _, pc := range pcs {
		fmt.Fprintf(&list, "%#x\n", pc)
	}
	script, in, out := filepath.Join(dir, "s.py"), filepath.Join(dir, "pcs"), filepath.Join(dir, "out")
	for name, text := range map[string]string{script: gdbScript, in: list.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("gdb", "-nx", "-batch", "-ex", "source "+script, exe)
	cmd.Env = append(os.Environ(), "PCS="+in, "OUT="+out)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Skipf("not supported here: gdb without python: %s", text)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// sample returns every nth byte of the text section: addresses between
// instructions have a line as well.
func sample(info *Info, count int) []uint64 {
	text := info.main.file.Section(".text")
	step := max(text.Size/uint64(count), 1)
	var pcs []uint64
	for pc := text.Addr; pc < text.Addr+text.Size; pc += step {
		pcs = append(pcs, pc)
	}
	return pcs
}

func TestVariants(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			exe, info := build(t, v)
			if !strings.HasSuffix(v.name, "split-types") { // gdb 13 finds no function in those
				t.Run("gdb", func(t *testing.T) { compareWithGDB(t, info, exe, sample(info, 600)) })
			}
			switch v.file {
			case "prog.c":
				t.Run("layouts", func(t *testing.T) { checkLayouts(t, exe, info) })
				t.Run("names", func(t *testing.T) { checkTypeNames(t, info) })
				t.Run("globals", func(t *testing.T) { checkGlobals(t, info) })
			case "prog.cc":
				t.Run("types", func(t *testing.T) { checkCxxTypes(t, info) })
			case "prog.rs":
				t.Run("types", func(t *testing.T) { checkRustTypes(t, info) })
			}
		})
	}
}

func compareWithGDB(t *testing.T, info *Info, exe string, pcs []uint64) {
	t.Helper()
	named, inlined := 0, 0
	for n, want := range gdbChains(t, exe, pcs) {
		calls, err := info.CallsAt(pcs[n])
		if err != nil {
			t.Errorf("%#x: %v", pcs[n], err)
			continue
		}
		if why := difference(calls, strings.Split(want, "|")[1:]); why != "" {
			t.Errorf("%#x: %s\ngdb %s", pcs[n], why, want)
		}
		if len(calls) > 0 {
			named++
		}
		if len(calls) > 1 {
			inlined++
		}
	}
	if named < 10 || inlined < 1 {
		t.Errorf("only %d addresses in functions and %d in inlined calls", named, inlined)
	}
}

// difference compares a chain with gdb's, which continues with the functions
// around a nested one.
func difference(calls []Call, want []string) string {
	if len(want) < len(calls) || len(calls) == 0 && len(want) > 0 {
		return fmt.Sprintf("%d calls, gdb has %d", len(calls), len(want))
	}
	for i, call := range calls {
		name, place, _ := strings.Cut(want[i], "\t")
		if !sameName(call.Function, name) {
			return fmt.Sprintf("level %d: function %q (%q)", i, call.Function.Name, call.Function.Linkage)
		}
		colon := strings.LastIndexByte(place, ':')
		if strconv.Itoa(call.Position.Line) != place[colon+1:] {
			return fmt.Sprintf("level %d: line %d", i, call.Position.Line)
		}
		file := strings.TrimLeft(place[:colon], "./")
		if call.Position.Line != 0 && !strings.HasSuffix(call.Position.File, file) {
			return fmt.Sprintf("level %d: file %q", i, call.Position.File)
		}
	}
	return ""
}

func sameName(f *Function, gdb string) bool {
	if f.Linkage == gdb || f.Linkage == "" && f.Name == gdb {
		return true
	}
	// without a linkage name gdb adds the parameters in C++
	return f.Linkage == "" && strings.HasPrefix(gdb, f.Name+"(")
}

func TestChainsAfterDwz(t *testing.T) {
	for _, tool := range []string{"dwz", "objcopy"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("not supported here: %s is not installed", tool)
		}
	}
	v := variant{"", "prog.cc", cxxText, "g++", []string{"-O2", "-std=c++17"}}
	first, _ := build(t, v)
	v.flags = []string{"-O1", "-std=c++17"}
	second, _ := build(t, v)
	alt := filepath.Join(t.TempDir(), "shared.debug")
	if out, err := exec.Command("dwz", "-m", alt, first, second).CombinedOutput(); err != nil {
		t.Fatalf("dwz: %v\n%s", err, out)
	}
	info := open(t, first)
	if info.main.file.Section(".gnu_debugaltlink") == nil {
		t.Fatal("dwz shared nothing")
	}
	compareWithGDB(t, info, first, sample(info, 600))
	both, ok, err := info.TypeNamed("Both", symbol(t, info, "main").Value)
	if err != nil || !ok || both.Size() == 0 || len(both.Members()) != 7 {
		t.Errorf("Both: %v, %v, %v", both, ok, err)
	}
}

func TestConcurrentUse(t *testing.T) {
	_, info := build(t, variant{"", "prog.cc", cxxText, "g++", []string{"-O2", "-std=c++17"}})
	main := symbol(t, info, "main").Value
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, pc := range sample(info, 100) {
				calls, err := info.CallsAt(pc)
				if err != nil {
					t.Error(err)
				}
				for _, call := range calls {
					vars, err := info.VariablesAt(call, pc)
					if err != nil {
						t.Error(err)
					}
					for _, v := range vars {
						exerciseType(v.Type, 2)
					}
				}
			}
			if _, ok, err := info.TypeNamed("Both", main); !ok || err != nil {
				t.Error(ok, err)
			}
		})
	}
	group.Wait()
}
