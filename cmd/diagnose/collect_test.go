package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/fleet/collect"
	"diagnose/image/collected"
	"diagnose/internal/crashtest"
)

const collectProgram = `
#include <stdio.h>
struct node { int value; struct node *next; };
int sum(struct node *n, int count)
{
	int total = 0;
	for (int i = 0; i < count; i++) {
		total += n->value;
		n = n->next;
	}
	return total;
}
int main(int argc, char **argv)
{
	struct node last = { 2, 0 }, first = { 1, &last };
	return sum(&first, argc + 2);
}
`

// TestCollect: a core that was handled is diagnosed, in the spool and in a corpus, after its program
// has gone.
func TestCollect(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "list.c", Text: collectProgram, Flags: []string{"-O1", "-Wl,--build-id"}})
	core := crashtest.Core(t, exe, crashtest.Run{Env: []string{"API_TOKEN=k9s8d7f6g5h4j3k2"}})
	dir := t.TempDir()
	config, spool := filepath.Join(dir, "collect.toml"), filepath.Join(dir, "spool")
	if err := os.WriteFile(config, []byte("[limits]\nfree_mib = 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	handle := func() outcome {
		t.Helper()
		return diagnose(t, text, "collect", "handle", "--config", config, "--spool", spool, "1073741824", "1073741824", "0", "0", "11", "1700000000")
	}
	got := handle()
	entry := strings.TrimSpace(got.stdout)
	if got.status != exitOK || !strings.HasPrefix(entry, spool) {
		t.Fatalf("%+v", got)
	}
	if got := handle(); got.status != exitOK || got.stdout != "not kept: same\n" {
		t.Errorf("again: %+v", got)
	}
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	report := diagnose(t, nil, "crash", "--core", filepath.Join(entry, "core"))
	if report.status != exitOK || !strings.Contains(report.stdout, "null pointer read of n->value in sum") || strings.Contains(report.stdout, "no file was found") {
		t.Errorf("%+v", report)
	}
	added := diagnose(t, nil, "corpus", "add", entry, "--corpus", filepath.Join(dir, "corpus"))
	id, _, _ := strings.Cut(added.stdout, " ")
	if added.status != exitOK {
		t.Fatalf("%+v", added)
	}
	report = diagnose(t, nil, "crash", "--core", filepath.Join(dir, "corpus", "entries", id, "core"))
	if report.status != exitOK || !strings.Contains(report.stdout, "null pointer read of n->value in sum") {
		t.Errorf("%+v", report)
	}
	status := diagnose(t, nil, "collect", "status", "--config", config, "--spool", spool)
	if status.status != exitOK || !strings.Contains(status.stdout, "1 kept, 1 like a kept one") {
		t.Errorf("%+v", status)
	}
	sent := diagnose(t, nil, "collect", "send", "--config", config, "--spool", spool, "--engine", listening(t))
	if sent.status != exitOK || !strings.HasPrefix(sent.stdout, "sent 1 of 1, ") {
		t.Errorf("%+v", sent)
	}
	if again := diagnose(t, nil, "collect", "send", "--config", config, "--spool", spool, "--engine", "nats://127.0.0.1:1"); again.status != exitOK || again.stdout != "" {
		t.Errorf("without cores: %+v", again)
	}
	if log, err := os.ReadFile(filepath.Join(spool, "log")); err == nil {
		t.Errorf("the log: %s", log)
	}
}

func TestCollectRefuses(t *testing.T) {
	dir := t.TempDir()
	spool := filepath.Join(dir, "spool")
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"handle"}, exitUsage, "six numbers"},
		{[]string{"handle", "1", "1", "0", "0", "11", "x"}, exitUsage, "no number"},
		{[]string{"handle", "1", "1", "0", "0", "99", "1"}, exitUsage, "no signal 99"},
		{[]string{"handle", "--spool", spool, "--config", dir + "/none", "1", "1", "0", "0", "11", "1"}, exitInput, "the ELF header"},
		{[]string{"install", "--root", dir, "--program", "/missing"}, exitUsage, "/missing"},
		{[]string{"install", "--total-rate", "0"}, exitUsage, "rates"},
		{[]string{"send", "--spool", spool}, exitUsage, "--engine"},
		{[]string{"scan", "--spool", spool, dir + "/none"}, exitInput, "no such file"},
		{[]string{"scan", "a", "b"}, exitUsage, "one directory"},
	} {
		got := diagnose(t, nil, append([]string{"collect"}, c.args...)...)
		if got.status != c.status || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
	if log, err := os.ReadFile(filepath.Join(spool, "log")); err != nil || !strings.Contains(string(log), "ELF header") {
		t.Errorf("the log: %s, %v", log, err)
	}
}

// TestCollectReal sets core_pattern of this machine for a moment: all programs that crash meanwhile are
// collected. So it runs only when it is asked for.
func TestCollectReal(t *testing.T) {
	if os.Getenv("DIAGNOSE_COLLECT_REAL") == "" || os.Geteuid() != 0 || exists(collect.DefaultSpool) || exists(collect.DefaultConfig) {
		t.Skip("not supported here: DIAGNOSE_COLLECT_REAL=1 is not set, this is not root, or cores are collected here")
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "list.c", Text: collectProgram, Flags: []string{"-O1", "-Wl,--build-id"}})
	home, err := os.MkdirTemp("/opt", "diagnose-collect-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	defer os.RemoveAll(collect.DefaultSpool)
	program, root := filepath.Join(home, "diagnose"), filepath.Join(home, "root")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// A root with this machine's /proc and /opt, and an /etc and a /var of its own.
	for _, err := range []error{os.Chmod(home, 0o755), os.Mkdir(root, 0o755), os.Symlink("/proc", root+"/proc"), os.Symlink("/opt", root+"/opt")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/core_pipe_limit"} {
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if now, err := os.ReadFile(name); err != nil || string(now) != string(before) {
				t.Errorf("%s is %q, %v after uninstall, and %q before", name, now, err, before)
			}
			os.WriteFile(name, before, 0)
		}()
	}
	if got := diagnose(t, nil, "collect", "install", "--root", root, "--program", program); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	run := exec.Command(exe)
	run.Env = append(os.Environ(), "API_TOKEN=k9s8d7f6g5h4j3k2")
	err = run.Run() // returns after the handler has ended
	if got := diagnose(t, nil, "collect", "uninstall", "--root", root); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	if err == nil || !strings.Contains(err.Error(), "core dumped") {
		t.Errorf("%v", err)
	}
	cores, err := filepath.Glob(filepath.Join(collect.DefaultSpool, "entries", "*", "core"))
	if err != nil || len(cores) == 0 {
		t.Fatal(cores, err)
	}
	report := diagnose(t, nil, "crash", "--core", cores[0])
	facts, err := collected.Read(filepath.Dir(cores[0]))
	if err != nil || report.status != exitOK || !strings.Contains(report.stdout, "null pointer read of n->value in sum") || facts.Program != exe || !facts.Redacted.Everywhere {
		t.Errorf("%+v, %v\n%+v", facts, err, report)
	}
}
