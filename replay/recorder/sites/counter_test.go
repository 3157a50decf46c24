package sites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// assembled returns an object with this code.
func assembled(t *testing.T, text string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "a.s")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(filepath.Dir(source), "a.so")
	if out, err := exec.Command("cc", "-shared", "-nostdlib", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}

// TestCounterSites has reads of the time-stamp counter that can be patched, that cannot, that
// share bytes with a system call, and bytes that only look like one.
func TestCounterSites(t *testing.T) {
	const ret = "\n ret\n"
	for _, c := range []struct{ name, text, want string }{
		{"usual", "f: rdtsc\n shl $32,%rdx\n or %rdx,%rax" + ret, "f kind 4 0+2+4"},
		{"processor", "f: mov %ecx,%esi\n rdtscp\n shl $32,%rdx" + ret, "f kind 4 2+3+0"},
		{"no room", "f: jmp 1f\n1: rdtsc" + ret, "f kind 5 0+2+0"},
		{"two of them", "f: rdtsc\n mov %eax,%esi\n rdtsc\n mov %eax,%edi\n ret\ng: rdtsc\n shl $32,%rdx" + ret, "f kind 5 0+2+0; f kind 4 2+2+2; g kind 4 0+2+4"},
		{"system call", "f: mov $39,%eax\n syscall\n mov %eax,%esi\n rdtsc" + ret, "f kind 1 5+2+0; f kind 5 0+2+0"},
		{"no instruction", "f: mov $0x310f,%eax" + ret, ""},
		{"data", "f: rdtsc\n shl $32,%rdx\n ret\n.byte 0x06,0x06,0x06\n" + strings.Repeat("nop\n", 100), "f kind 5 0+2+0"},
		{"data, and functions", "f: .cfi_startproc\n rdtsc\n shl $32,%rdx\n ret\n.cfi_endproc\n.byte 0x06,0x06\ng: .cfi_startproc\n mov $0x310f,%eax\n" +
			strings.Repeat("nop\n", 100) + " ret\n.cfi_endproc\n", "f kind 4 0+2+4"},
		{"only data", "f: ret\n.byte 0x06,0x0f,0x31,0x48,0x89,0xc0,0x06\n" + strings.Repeat("nop\n", 100), ""},
		{"data or code", "f: ret\n.byte 0x06,0x0f,0x31,0x48,0x89,0xc0\n" + strings.Repeat("nop\n", 100) + " ret\n", "f kind 5 0+2+0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, found := findSites(t, assembled(t, ".text\n.globl f, g\n"+c.text))
			var got []string
			for _, s := range found.Sites {
				symbol, _ := f.SymbolAt(s.At)
				got = append(got, fmt.Sprintf("%s kind %d %d+%d+%d", symbol.Name, s.Kind, s.Before, s.Length-s.Before-s.After, s.After))
				if !s.fits(readObject(f)) {
					t.Errorf("%+v does not fit the object", s)
				}
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestChanceIsCounted(t *testing.T) {
	_, found := findSites(t, assembled(t, ".text\nf: rdrand %eax\n rdseed %rcx\n rdtsc\n shl $32,%rdx\n ret\n"))
	if found.Random != 2 {
		t.Errorf("%d instructions that bring chance, want 2", found.Random)
	}
	again, err := decodeCode(encodeCode(&objectCode{ObjectSites: found}))
	if err != nil || fmt.Sprint(again.ObjectSites) != fmt.Sprint(found) {
		t.Errorf("from the cache: %v %v, want %v", again, err, found)
	}
}
