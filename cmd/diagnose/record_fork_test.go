package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// departs makes a child that drops its rights before it maps a file.
const departs = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDONLY), status;
	pid_t child = fork();

	if (!child) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		char *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED || p[0] != 'm')
			_exit(3);
		abort();
	}
	waitpid(child, &status, 0);
	return !WIFSIGNALED(status);
}
`

// A child process has no more files than it needs: making files is the cost of a fork. The bytes of
// mapped files are kept even if the process may no longer write to the recording's directory.
func TestRecordOfAForkThatDeparts(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip(&crashtest.UnsupportedError{What: "only root can become another user"})
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "departs.c", Text: departs})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mapped"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := recordCommand(t, "--", exe, file)
	_, _, stderr := ended(t, cmd)
	r := recordingNamed(t, cmd, recordings(t, cmd)[0])
	if len(r.Manifest.Children) != 1 {
		t.Fatalf("children: %+v\n%s", r.Manifest.Children, stderr)
	}
	child, err := r.Child(r.Manifest.Children[0])
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if child.Manifest.Outcome.Kind != record.OutcomeSignal || child.Manifest.Sizes.Data == 0 {
		t.Errorf("the child: %+v, %+v", child.Manifest.Outcome, child.Manifest.Sizes)
	}
	for _, name := range []string{record.StartName, record.SitesName} {
		if _, err := os.Stat(filepath.Join(child.Dir, name)); err == nil {
			t.Errorf("a fork's child has a file %s", name)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := diagnose(t, nil, "replay", "--verify", child.Dir); got.status != 0 {
		t.Errorf("replay: status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}
