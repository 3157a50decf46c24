package sites

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"diagnose/image/object"
)

func findAtomics(t *testing.T, path string) (*object.File, Atomics) {
	t.Helper()
	f, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	found, err := FindAtomics(t.Context(), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, found
}

// addresses are those of all atomic instructions, by whether they are in a window.
func (a *Atomics) addresses() map[string]bool {
	list := map[string]bool{}
	for i := range a.Windows {
		w := &a.Windows[i]
		for j := range w.Moved {
			if w.Ordered[j] && IsAtomic(&w.Moved[j]) {
				list[fmt.Sprintf("%x", w.Moved[j].PC)] = true
			}
		}
	}
	for _, pc := range a.Left {
		list[fmt.Sprintf("%x", pc)] = false
	}
	return list
}

// TestAtomicsAgainstObjdump expects every instruction that objdump prints with a lock prefix, and
// every exchange with memory.
func TestAtomicsAgainstObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("objdump is not installed")
	}
	for _, path := range []string{libcPath(t), "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libgomp.so.1"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, found := findAtomics(t, path)
		have := found.addresses()
		fences, wrong := 0, []string{}
		for line := range strings.Lines(string(out)) {
			address, text, ok := strings.Cut(line, ":\t")
			words := strings.Fields(text)
			if !ok || len(words) < 2 {
				continue
			}
			if words[0] != "lock" && (!strings.HasPrefix(words[0], "xchg") || !strings.ContainsAny(text, "(:")) {
				continue
			}
			if strings.Contains(text, "$0x0,") && strings.Contains(text, "(%rsp)") {
				fences++
			} else if _, known := have[strings.TrimSpace(address)]; !known {
				wrong = append(wrong, line)
			} else {
				delete(have, strings.TrimSpace(address))
			}
		}
		if found.Total() < 20 || len(wrong) > 0 || len(have) > 0 || fences != found.Fences {
			t.Errorf("%s: of %d missing %q, surplus %v, %d fences for %d", path, found.Total(), wrong, have, found.Fences, fences)
		}
		t.Logf("%s: %d of %d in %d windows, %d fences, %d unsure", path, found.Patchable, found.Total(), len(found.Windows), found.Fences, found.Unsure)
	}
}

func TestAtomicWindows(t *testing.T) {
	for _, path := range []string{libcPath(t), "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libgomp.so.1"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		f, found := findAtomics(t, path)
		system, err := CachedSites(f)
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for i := range found.Windows {
			w := &found.Windows[i]
			if w.Start < last || w.End-w.Start < jumpLen || len(w.Ordered) != len(w.Moved) {
				t.Errorf("%s: window %#x-%#x after %#x", path, w.Start, w.End, last)
			}
			last = w.End
			for _, s := range system.Sites {
				if s.At < w.End && w.Start < s.At+uint64(s.Length) {
					t.Errorf("%s: window %#x-%#x shares bytes with the system call at %#x", path, w.Start, w.End, s.At)
				}
			}
		}
	}
}
