package replay_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

const mappingText = `#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);
		struct stat s;
		if (fd < 0 || fstat(fd, &s)) return 2;
		const unsigned char *p = mmap(NULL, s.st_size, PROT_READ, i % 2 ? MAP_SHARED : MAP_PRIVATE, fd, 0);
		unsigned long sum = 0;
		if (p == MAP_FAILED) return 3;
		for (long n = 0; n < s.st_size; n += 512) sum = sum * 31 + p[n];
		printf("%lx\n", sum);
	}
	return 0;
}
`

// installedFile returns a large enough file that only an installation changes.
func installedFile(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/locale/*/LC_CTYPE", "/usr/share/i18n/charmaps/*", "/usr/lib/gcc/x86_64-linux-gnu/*/libgcc.a"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() >= 128<<10 {
				return file
			}
		}
	}
	t.Skip("no large file below /usr was found")
	return ""
}

// A file that only an installation changes is mapped again from its path. Every other file is in
// the recording, and may have been deleted.
func TestMappedFiles(t *testing.T) {
	installed, own := installedFile(t), filepath.Join(t.TempDir(), "own")
	text, err := os.ReadFile(installed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, text, 0o644); err != nil {
		t.Fatal(err)
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "mapping.c", Text: mappingText, Flags: []string{"-O1"}})
	r := recordtest.RecordProgram(t, exe, []string{installed, installed, own, own}, "", "exit 0")
	if lines := strings.Fields(r.Output); len(lines) != 4 || lines[0] != lines[3] {
		t.Fatalf("the program wrote %q", r.Output)
	}
	kept := map[string]int{}
	rec, err := record.Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		for i := range e.Payloads {
			m, ok := e.Payloads[i].Mapped()
			if !ok {
				continue
			}
			kept[m.Path] += 0
			if m.Data != eventlog.NotKept {
				kept[m.Path]++
			}
		}
	}
	resolved, err := filepath.EvalSymlinks(installed)
	if err != nil {
		t.Fatal(err)
	}
	if n, seen := kept[resolved]; !seen || n != 0 || kept[own] != 2 {
		t.Errorf("kept are %v", kept)
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	recordtest.Identical(t, r.Dir, 2)
}

// If an installed file has changed since, the replay says so.
func TestMappedFileChanged(t *testing.T) {
	const dir = "/usr/share"
	file, err := os.CreateTemp(dir, ".diagnose-test-*")
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) || err != nil && strings.Contains(err.Error(), "read-only") {
		t.Skipf("no file can be made in %s: %v", dir, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file.Name()) })
	if _, err := file.WriteString(strings.Repeat("installed ", 20000)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Chmod(0o644), file.Close()); err != nil {
		t.Fatal(err)
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "mapping.c", Text: mappingText, Flags: []string{"-O1"}})
	r := recordtest.RecordProgram(t, exe, []string{file.Name()}, "", "exit 0")
	recordtest.Identical(t, r.Dir, 1)
	if err := os.WriteFile(file.Name(), []byte(strings.Repeat("changed!! ", 20001)), 0o644); err != nil {
		t.Fatal(err)
	}
	rec, err := record.Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	_, err = replay.Run(t.Context(), rec, replay.PlainRequest{})
	if err == nil || !strings.Contains(err.Error(), filepath.Base(file.Name())+"\" changed since") {
		t.Errorf("a replay with another file: %v", err)
	}
}
