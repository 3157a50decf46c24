package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// recordedEnding records a program that fails and returns the recording's directory.
func recordedEnding(t *testing.T, args ...string) string {
	t.Helper()
	cmd := recordCommand(t, append([]string{"--"}, args...)...)
	ended(t, cmd)
	names := recordings(t, cmd)
	if len(names) != 1 {
		t.Fatalf("recordings %q", names)
	}
	return filepath.Join(cmd.Dir, "recordings", names[0])
}

// Every format shows the last messages and the failed calls of a program that ended with a status,
// with their places and without secrets.
func TestCrashTellsLastWords(t *testing.T) {
	const text = `
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
__attribute__((noinline)) static int prepare(const char *dir)
{
	if (mkdir(dir, 0700) == 0)
		return 0;
	fprintf(stderr, "cannot prepare %s with password=%s\n", dir, getenv("FOR_PREPARE"));
	return -1;
}
int main(int argc, char **argv)
{
	if (prepare(argv[1]) < 0) {
		printf("token: %s\n", getenv("FOR_PREPARE"));
		exit(3);
	}
	return argc;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "prepare.c", Text: text, Flags: []string{"-O1"}})
	t.Setenv("FOR_PREPARE", "SEKRET2")
	dir := recordedEnding(t, exe, "/nonexistent/pwd=SEKRET3/spool")
	for _, format := range []string{"text", "markdown", "json", "html", "sarif"} {
		got := diagnose(t, nil, "crash", "--recording", dir, "--format", format)
		if got.status != exitOK || strings.Contains(got.stdout, "SEKRET") {
			t.Errorf("%s: status %d, or a secret; %s", format, got.status, got.stderr)
		}
		for _, says := range []string{"cannot prepare /nonexistent/", "mkdir(", "ENOENT", "prepare.c"} {
			if !strings.Contains(got.stdout, says) {
				t.Errorf("%s: %q is not in the report", format, says)
			}
		}
	}
	got := diagnose(t, nil, "crash", "--recording", dir, "--show-secrets")
	for _, says := range []string{"password=SEKRET2", "token: SEKRET2", "pwd=SEKRET3/spool\", 448): ENOENT (no such file or directory)"} {
		if !strings.Contains(got.stdout, says) {
			t.Errorf("%q is not in %s", says, got.stdout)
		}
	}
}

// The message of a language's runtime heads the report.
func TestCrashOfAPythonScript(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skip(err)
	}
	script := filepath.Join(t.TempDir(), "count.py")
	text := "def count(text):\n    return len(text.split())\n\n\ndef main():\n    print(count(None))\n\n\nmain()\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := diagnose(t, nil, "crash", "--recording", recordedEnding(t, python, script))
	for _, says := range []string{"exit with status 1 in count: AttributeError: 'NoneType' object has no attribute 'split' (" + script + ":2)\n",
		"      return len(text.split())\n"} {
		if !strings.Contains(got.stdout, says) {
			t.Errorf("%q is not in %s%s", says, got.stdout, got.stderr)
		}
	}
}
