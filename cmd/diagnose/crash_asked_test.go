package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
)

// TestCrashAskedToEnd: a program that hangs, and that takes the signal of the key that ends it, has not failed by the status that it exits with then.
// Programs that wait for work do not hang.
func TestCrashAskedToEnd(t *testing.T) {
	for _, test := range []struct {
		source, compiler, level string
		says                    []string
	}{
		{"handler.c", "gcc", "-O0", []string{"deadlock in main: ", "`emptied`", "then SIGINT came, which the program took: exit status 3", "emptied was signalled by thread 2"}},
		{"handler.c", "clang", "-O2", []string{"deadlock in main: ", "`emptied`", "then SIGINT came, which the program took: exit status 3"}},
		{"crew.cc", "g++", "-O0", []string{"deadlock in ", "`crew.ready`", "thread 2 waits for a signal, thread 3 only polls", "no thread ever signals it"}},
		{"crew.cc", "clang++", "-O2", []string{"deadlock in ", "`crew.ready`", "thread 2 waits for a signal, thread 3 only polls", "no thread ever signals it"}},
		{"reraise.c", "gcc", "-O1", []string{"deadlock in ", "then SIGINT came, which the program took: SIGINT"}},
		{"idle.c", "clang", "-O2", []string{"exit with status 130"}},
		{"idle.c", "gcc", "-O0", []string{"exit with status 130"}},
		{"server.c", "gcc", "-O0", []string{"exit with status 4"}},
	} {
		t.Run(test.source+" "+test.compiler+" "+test.level, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../internal/testdata/asked", test.source))
			if err != nil {
				t.Fatal(err)
			}
			exe := crashtest.Compile(t, crashtest.Program{Source: test.source, Text: string(text), Compiler: test.compiler, Flags: []string{test.level, "-pthread"}})
			missing := "the program was not recorded"
			for after := time.Second; after < 10*time.Second && missing != ""; after *= 2 { // on a busy machine it may not hang yet
				missing = missingIn(interruptedAfter(t, exe, after), test.says)
			}
			if missing != "" {
				t.Error(missing)
			}
		})
	}
}

// interruptedAfter reports on a recording of a program whose terminal's user presses Ctrl-C after a time.
func interruptedAfter(t *testing.T, exe string, after time.Duration) string {
	t.Helper()
	cmd := recordCommand(t, "--", exe)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	names := recordings(t, cmd)
	if len(names) != 1 {
		t.Fatalf("recordings %q", names)
	}
	got := diagnose(t, nil, "crash", "--time", "1m", "--recording", filepath.Join(cmd.Dir, "recordings", names[0]))
	return got.stdout + got.stderr
}

func missingIn(report string, says []string) string {
	for _, s := range says {
		if !strings.Contains(report, s) {
			return "it does not say " + s + ":\n" + report
		}
	}
	return ""
}
