package sanitizer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const heapC = `#include <stdlib.h>
#include <string.h>
static char *make(int n) {
	return malloc(n);
}
int table[4];
int main(int n, char **v) {
	char *p = make(8);
	char local[6];
	switch (v[1][0]) {
	case 'o':
		memset(p, 1, n + 7);
		break;
	case 'f':
		free(p);
		return p[0];
	case 'd':
		free(p);
		free(p);
		break;
	case 'g':
		return table[n + 2];
	case 's':
		local[n * 3] = 1;
		return local[0];
	case 'u':
		if (p[n])
			return 1;
		break;
	case 'z':
		p = 0;
		return *(volatile char *)p;
	}
	return 0;
}
`

const raceC = `#include <pthread.h>
static int counter;
static void *work(void *p) {
	counter++;
	return p;
}
int main(void) {
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	counter = 5;
	pthread_join(t, 0);
	return 0;
}
`

// report builds a program with a sanitizer and returns what it writes.
func report(t *testing.T, text, flag string, args ...string) (output, top string) {
	t.Helper()
	compiler := "gcc"
	if flag == "memory" {
		compiler, flag = "clang", "memory -fsanitize-memory-track-origins"
	}
	top = t.TempDir()
	if err := os.WriteFile(filepath.Join(top, "a.c"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(compiler, strings.Fields("-g -O0 -pthread -w -fno-omit-frame-pointer -o a a.c -fsanitize="+flag)...)
	build.Dir = top
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the sanitizer is missing: %s", out)
	}
	cmd := exec.Command(filepath.Join(top, "a"), args...)
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0", "UBSAN_OPTIONS=print_stacktrace=1")
	out, _ := cmd.CombinedOutput() // it fails
	return string(out), top
}

func lineOf(text, part string) int {
	return strings.Count(text[:strings.Index(text, part)], "\n") + 1
}

func TestAddress(t *testing.T) {
	for _, test := range []struct {
		arg, kind       string
		class           Class
		at, freed, name string
		heap            bool
	}{
		{"o", "heap-buffer-overflow", Bounds, "memset(p", "", "", true},
		{"f", "heap-use-after-free", Lifetime, "return p[0]", "free(p);\n\t\treturn", "", true},
		{"d", "double-free", Lifetime, "free(p);\n\t\tbreak", "free(p);\n\t\tfree", "", true},
		{"g", "global-buffer-overflow", Bounds, "return table", "", "table", false},
		{"s", "stack-buffer-overflow", Bounds, "local[n * 3]", "", "local", false},
		{"z", "SEGV", Other, "return *(vol", "", "", false},
	} {
		t.Run(test.kind, func(t *testing.T) {
			text, top := report(t, heapC, "address", test.arg)
			v := Read(text, top)
			if v == nil {
				t.Fatalf("no violation in\n%s", text)
			}
			if v.Kind != test.kind || v.Class != test.class || v.Variable != test.name || len(v.Accesses) != 1 ||
				v.Accesses[0] != (Place{"a.c", lineOf(heapC, test.at), "main"}) {
				t.Errorf("%+v of\n%s", v, text)
			}
			if test.heap && (len(v.Allocated) != 2 || v.Allocated[0] != Place{"a.c", 4, "make"}) {
				t.Errorf("allocated at %+v", v.Allocated)
			}
			if test.freed != "" && (len(v.Freed) == 0 || v.Freed[0].Line != lineOf(heapC, test.freed)) {
				t.Errorf("freed at %+v", v.Freed)
			}
		})
	}
}

func TestUndefined(t *testing.T) {
	text, top := report(t, heapC, "bounds", "g")
	v := Read(text, top)
	if v == nil || v.Kind != "index-out-of-bounds" || v.Class != Bounds || v.Accesses[0].Line != lineOf(heapC, "return table") {
		t.Errorf("%+v of\n%s", v, text)
	}
}

func TestMemory(t *testing.T) {
	text, top := report(t, heapC, "memory", "u")
	v := Read(text, top)
	if v == nil || v.Kind != "use-of-uninitialized-value" || v.Class != Other || len(v.Accesses) != 1 || v.Accesses[0].Line != lineOf(heapC, "if (p[n])") ||
		len(v.Allocated) != 2 || v.Allocated[0].Line != 4 {
		t.Errorf("%+v of\n%s", v, text)
	}
	if all := ReadAll(text+text, top); len(all) != 2 || all[1].Accesses[0] != all[0].Accesses[0] {
		t.Errorf("%d violations in two reports", len(all))
	}
}

func TestThread(t *testing.T) {
	text, top := report(t, raceC, "thread")
	v := Read(text, top)
	if v == nil {
		t.Skipf("the race was not seen: %s", text)
	}
	lines := map[int]bool{}
	for _, a := range v.Accesses {
		lines[a.Line] = true
	}
	if v.Kind != "data-race" || v.Class != Race || len(v.Accesses) != 2 || !lines[4] || !lines[10] || v.Variable != "counter" {
		t.Errorf("%+v of\n%s", v, text)
	}
}

func TestNoReport(t *testing.T) {
	if v := Read("hello\nworld\n", "/tmp"); v != nil {
		t.Errorf("%+v", v)
	}
}

// TestRelativePaths: reports name files as the compiler was called with them.
func TestRelativePaths(t *testing.T) {
	top := t.TempDir()
	for _, file := range []string{"lib/frame.c", "lib/twice.c", "src/twice.c", "main.c"} {
		if err := os.MkdirAll(filepath.Join(top, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	report := func(frame string) string {
		return "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\nREAD of size 1 at 0x1\n" +
			"    #0 0x1 in memcpy ../../libsanitizer/interceptors.inc:8\n    #1 0x2 in pass " + frame + ":7\n    #2 0x3 in main main.c:9\n"
	}
	for frame, want := range map[string]string{
		"lib/frame.c": "lib/frame.c", "./lib/frame.c": "lib/frame.c", "frame.c": "lib/frame.c", filepath.Join(top, "lib/frame.c"): "lib/frame.c",
		"twice.c": "main.c", "nptl/start.c": "main.c", "../main.c": "main.c", "/elsewhere/main.c": "main.c",
	} {
		if v := Read(report(frame), top); v == nil || v.Accesses[0].File != want {
			t.Errorf("%s: %+v, not %s", frame, v, want)
		}
	}
}
