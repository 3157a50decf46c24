package debuginfo

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/internal/crashtest"
)

// second is another unit of the programs, with a type that both have.
const second = `struct Both; struct pair { long a; char b; };
long __attribute__((noinline)) sum(struct pair *p) { return p->a + p->b; }`

// A package says of every address, of types and of variables what the .dwo files
// say that it was made of.
func TestPackages(t *testing.T) {
	for _, x := range []struct {
		packer, compiler string
		flags            []string
	}{
		{"dwp", "g++", []string{"-O2", "-gdwarf-4"}},
		{"dwp", "g++", []string{"-O0", "-gdwarf-4", "-fdebug-types-section"}},
		{"llvm-dwp", "clang++", []string{"-O2", "-gdwarf-4"}},
		{"llvm-dwp", "clang++", []string{"-O2", "-gdwarf-5"}},
		{"llvm-dwp", "clang++", []string{"-O0", "-gdwarf-5", "-fdebug-types-section"}},
	} {
		t.Run(fmt.Sprint(x.packer, x.flags), func(t *testing.T) {
			other := filepath.Join(t.TempDir(), "second.cc")
			if err := os.WriteFile(other, []byte(second), 0o600); err != nil {
				t.Fatal(err)
			}
			flags := append(x.flags, "-gsplit-dwarf", "-std=c++17", other)
			exe := crashtest.Compile(t, crashtest.Program{Source: "prog.cc", Text: cxxText, Compiler: x.compiler, Flags: flags})
			want := described(t, open(t, exe))
			pack(t, x.packer, exe)
			info := open(t, exe)
			if got := described(t, info); got != want {
				t.Errorf("the package says\n%s\nthe files\n%s", got, want)
			}
			checkCxxTypes(t, info)
			if p, err := info.pack(); p == nil || err != nil || p.units.units != 2 {
				t.Errorf("the package was not read: %+v, %v", p, err)
			}
		})
	}
}

// described is what debug information says of a program.
func described(t *testing.T, info *Info) string {
	t.Helper()
	var out strings.Builder
	named := 0
	for _, pc := range sample(info, 2000) {
		calls, err := info.CallsAt(pc)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			fmt.Fprintf(&out, "%#x %v %v", pc, c.Position, c.Inlined)
			if c.Function != nil {
				named++
				fmt.Fprintf(&out, " %s %s %#x", c.Function.Name, c.Function.Linkage, c.Function.Entry)
			}
			out.WriteString("\n")
		}
	}
	if named < 300 {
		t.Fatalf("only %d functions have a name", named)
	}
	for _, name := range []string{"Both", "Left", "Virtual"} {
		for _, m := range typeNamed(t, info, name).Members() {
			fmt.Fprintf(&out, "%s.%s %s @%d\n", name, m.Name, m.Type.Name(), m.Offset)
		}
	}
	return out.String()
}

// pack joins the .dwo files of a program to a package and removes them.
func pack(t testing.TB, packer, exe string) {
	t.Helper()
	if _, err := exec.LookPath(packer); err != nil {
		t.Skip(packer + " is not installed")
	}
	// llvm-dwp 14 does not end for DWARF 5 of gcc.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, packer, "-e", exe, "-o", exe+".dwp").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", packer, err, out)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(exe), "*.dwo"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no .dwo files, %v", err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

// indexOf makes an index of one unit.
func indexOf(version, columns uint32, signature uint64, ids, offsets, sizes []uint32) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, version)
	b = le.AppendUint32(b, columns)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, 2) // slots
	slots := make([]uint64, 2)
	slots[signature&1] = signature
	rows := make([]uint32, 2)
	rows[signature&1] = 1
	for _, s := range slots {
		b = le.AppendUint64(b, s)
	}
	for _, list := range [][]uint32{rows, ids, offsets, sizes} {
		for _, v := range list {
			b = le.AppendUint32(b, v)
		}
	}
	return b
}

func TestPackageIndex(t *testing.T) {
	data := indexOf(5, 2, 0x1234_5678_9abc_def1, []uint32{1, 7}, []uint32{16, 99}, []uint32{40, 7})
	x, err := readPackageIndex(fake(map[sectionID][]byte{secCUIndex: data}).main, secCUIndex)
	if err != nil {
		t.Fatal(err)
	}
	w, err := x.find(0x1234_5678_9abc_def1)
	if err != nil || len(w) != 1 || w[secInfo] != (window{16, 40}) {
		t.Errorf("got %v, %v", w, err)
	}
	if w, err := x.find(0x1234_5678_9abc_def3); w != nil || err != nil {
		t.Errorf("of another signature %v, %v", w, err)
	}
	for _, bad := range [][]byte{data[:12], data[:len(data)-1], indexOf(3, 2, 1, []uint32{1, 3}, []uint32{1, 1}, []uint32{1, 1})} {
		if _, err := readPackageIndex(fake(map[sectionID][]byte{secCUIndex: bad}).main, secCUIndex); err == nil {
			t.Errorf("a damaged index of %d bytes was read", len(bad))
		}
	}
}

func FuzzPackageIndex(f *testing.F) {
	f.Add(indexOf(5, 2, 0x1234_5678_9abc_def1, []uint32{1, 3}, []uint32{16, 0}, []uint32{40, 7}), uint64(0x1234_5678_9abc_def1))
	f.Add(indexOf(2, 1, 6, []uint32{2}, []uint32{16}, []uint32{40}), uint64(6))
	f.Fuzz(func(t *testing.T, data []byte, signature uint64) {
		x, err := readPackageIndex(fake(map[sectionID][]byte{secTUIndex: data}).main, secTUIndex)
		if err != nil {
			return
		}
		x.find(signature)
		for _, s := range x.signatures() {
			x.find(s)
		}
	})
}
