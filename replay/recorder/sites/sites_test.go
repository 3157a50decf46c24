package sites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/image/object"
)

// libcPath returns the path of this machine's C library.
func libcPath(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"} {
		if file, err := filepath.EvalSymlinks(path); err == nil {
			return file
		}
	}
	t.Fatal("no libc.so.6 found")
	return ""
}

func findSites(t *testing.T, path string) (*object.File, ObjectSites) {
	t.Helper()
	f, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	found, err := FindSites(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return f, found
}

// TestSitesAgainstObjdump expects every system call that objdump finds in the C library and the
// dynamic linker, except for the two that must stay.
func TestSitesAgainstObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("objdump is not installed")
	}
	for _, path := range []string{libcPath(t), "/lib64/ld-linux-x86-64.so.2"} {
		out, err := exec.Command("objdump", "-d", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, found := findSites(t, path)
		have := map[string]bool{}
		for _, s := range found.Sites {
			have[fmt.Sprintf("%x", s.Resume-syscallLen)] = true
		}
		lines := strings.Split(string(out), "\n")
		var missing []string
		for i, line := range lines {
			address, text, ok := strings.Cut(line, ":")
			if !ok || !strings.HasSuffix(strings.TrimSpace(text), "syscall") || have[strings.TrimSpace(address)] {
				continue
			}
			if before := lines[i-1]; !strings.Contains(before, "$0xf,%rax") && !strings.Contains(before, "$0x3a,%eax") {
				missing = append(missing, line)
			}
		}
		if len(have) < 20 || len(missing) > 0 || len(found.Undecided) > 0 {
			t.Errorf("%s: %d found, missing %q, undecided %x", path, len(have), missing, found.Undecided)
		}
	}
}

func TestSitesOfLibcNeedNoTraps(t *testing.T) {
	_, found := findSites(t, libcPath(t))
	clones, last := 0, uint64(0)
	for _, s := range found.Sites {
		switch s.Kind {
		case SiteClone:
			clones++
		case SiteTrap:
			t.Errorf("%#x needs a trap", s.At)
		}
		if s.Length < jumpLen || s.Length != s.Before+syscallLen+s.After || s.Resume != s.At+uint64(s.Before)+syscallLen {
			t.Errorf("inconsistent: %+v", s)
		}
		if s.At < last {
			t.Errorf("%#x overlaps the site before it", s.At)
		}
		last = s.At + uint64(s.Length)
	}
	if clones != 2 {
		t.Errorf("%d sites create threads, want clone and clone3", clones)
	}
}

// TestSitesAmongOddCode has code that libc does not have: a jump to the instruction itself,
// operands that depend on the address, and bytes that only look like a call.
func TestSitesAmongOddCode(t *testing.T) {
	source := filepath.Join(t.TempDir(), "odd.s")
	text := `.text
.globl jumped_at, relative, constant, plain, data
jumped_at: xor %eax,%eax
1: syscall
 test %rax,%rax
 js 1b
 ret
relative: mov v(%rip),%eax
 syscall
 mov v(%rip),%ecx
 ret
constant: mov $0x050f,%eax
 ret
plain: mov $39,%eax
 syscall
 ret
.data
v: .long 39
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(filepath.Dir(source), "odd.so")
	if out, err := exec.Command("cc", "-shared", "-nostdlib", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, found := findSites(t, library)
	var got []string
	for _, s := range found.Sites {
		symbol, _ := f.SymbolAt(s.At)
		got = append(got, fmt.Sprintf("%s kind %d %d+2+%d", symbol.Name, s.Kind, s.Before, s.After))
	}
	want := "jumped_at kind 1 0+2+3; relative kind 2 0+2+0; plain kind 1 5+2+0"
	if strings.Join(got, "; ") != want || len(found.Undecided) != 0 {
		t.Errorf("got %q, undecided %x\nwant %q", got, found.Undecided, want)
	}
}

// TestSitesDistrustData: where there is data among the code, a call counts only if its number
// is known.
func TestSitesDistrustData(t *testing.T) {
	source := filepath.Join(t.TempDir(), "data.s")
	text := ".text\nplain: mov $39,%eax\n syscall\n ret\n.byte 0x06,0x06,0x06\n" + strings.Repeat("nop\n", 100) + "looks: add %ecx,%ecx\n syscall\n nop\n nop\n nop\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(filepath.Dir(source), "data.so")
	if out, err := exec.Command("cc", "-shared", "-nostdlib", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, found := findSites(t, library)
	if len(found.Sites) != 1 || len(found.Undecided) != 1 {
		t.Errorf("%+v", found)
	}
}

func BenchmarkSitesOfLibc(b *testing.B) {
	for b.Loop() {
		f, err := object.Open("/lib/x86_64-linux-gnu/libc.so.6")
		if err != nil {
			b.Skip(err)
		}
		if _, err := FindSites(b.Context(), f); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
