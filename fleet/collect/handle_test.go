package collect

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/fleet/collect/spool"
	"diagnose/image"
	"diagnose/image/collected"
	"diagnose/internal/crashtest"
)

// program waits for a line before it crashes; its argument is the way that it crashes in.
const program = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char table[1 << 18] = "a table of the program's file";
char *copy;
__attribute__((noinline)) void by_null(volatile int *p) { *p = 1; }
__attribute__((noinline)) void by_abort(void) { abort(); }
__attribute__((noinline)) void other_abort(void) { puts(""); abort(); }
int main(int argc, char **argv)
{
	char line[8];
	copy = strdup(getenv("DB_PASSWORD"));
	table[100] = 1;
	puts("ready");
	fflush(stdout);
	fgets(line, sizeof line, stdin);
	switch (argc > 1 ? argv[1][0] : 0) {
	case 'a': by_abort(); break;
	case 'o': other_abort(); break;
	default: by_null(0);
	}
	return copy[0];
}
`

const secret = "correct-horse-battery"

func compile(t *testing.T, compiler string, flags ...string) string {
	t.Helper()
	return crashtest.Compile(t, crashtest.Program{Source: "program.c", Text: program, Compiler: compiler, Flags: flags})
}

// withFiles has cores of this process's children hold the pages of mapped files as well.
func withFiles(t *testing.T) {
	t.Helper()
	const filter = "/proc/self/coredump_filter"
	before, err := os.ReadFile(filter)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filter, []byte("0x7f"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(filter, append([]byte("0x"), bytes.TrimSpace(before)...), 0) })
}

func newSpool(t *testing.T) *spool.Spool {
	t.Helper()
	limits := spool.DefaultLimits
	limits.FreeBytes = 0
	s, err := spool.Open(filepath.Join(t.TempDir(), "spool"), limits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// handle hands a core over as the kernel does, through a pipe.
func handle(t *testing.T, s *spool.Spool, core string, crash Crash) *Outcome {
	t.Helper()
	cat := exec.Command("cat", core)
	in, err := cat.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		cat.Wait()
	}()
	crash.Time = time.Now()
	outcome, err := Handle(s, in, crash)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// TestHandle: the core that is kept, with the objects, shows the same as the whole one, after
// the files have gone from the machine.
func TestHandle(t *testing.T) {
	crashtest.NeedKernelCores(t)
	withFiles(t)
	for _, v := range []struct {
		compiler string
		flags    []string
	}{
		{"gcc", []string{"-O0", "-Wl,--build-id"}},
		{"gcc", []string{"-O2", "-no-pie", "-Wl,--build-id"}},
		{"clang", []string{"-O1", "-Wl,--build-id"}},
		{"gcc", []string{"-O2", "-Wl,--build-id=none"}},
	} {
		t.Run(v.compiler+strings.Join(v.flags, ""), func(t *testing.T) {
			exe := compile(t, v.compiler, v.flags...)
			core := crashtest.Core(t, exe, crashtest.Run{Env: []string{"DB_PASSWORD=" + secret}})
			s := newSpool(t)
			outcome := handle(t, s, core, Crash{PID: 1 << 30, Signal: 11})
			if outcome.Dir == "" {
				t.Fatalf("not kept: %s", outcome.Refused)
			}
			facts, err := collected.Read(outcome.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if facts.Program != exe || facts.Signal != 11 || facts.Core.LeftOut < 1<<20 || len(facts.Objects) < 3 || len(facts.Lacking) > 0 ||
				strings.Join(facts.Redacted.Names, " ") != "DB_PASSWORD" || facts.Redacted.Everywhere {
				t.Errorf("%+v", facts)
			}
			whole := openCore(t, core)
			defer whole.Close()
			if err := os.Rename(exe, exe+".gone"); err != nil {
				t.Fatal(err)
			}
			kept := openCore(t, filepath.Join(outcome.Dir, collected.CoreName))
			defer kept.Close()
			compareProcesses(t, whole, kept)
			if kept.Exe == nil || !strings.HasPrefix(kept.Exe.File, outcome.Dir) {
				t.Errorf("the executable is %+v", kept.Exe)
			}
		})
	}
}

func openCore(t *testing.T, path string) *image.Process {
	t.Helper()
	p, err := image.OpenCore(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compareProcesses compares the memory that the whole core has, but for the environment, and what the
// reader says of it.
func compareProcesses(t *testing.T, whole, kept *image.Process) {
	t.Helper()
	read := 0
	for _, m := range whole.Mappings {
		want, got := make([]byte, m.End-m.Start), make([]byte, m.End-m.Start)
		if n, err := whole.ReadMemory(m.Start, want); err != nil {
			want, got = want[:n], got[:n]
		}
		if _, err := kept.ReadMemory(m.Start, got); err != nil {
			t.Errorf("%v %s: %v", m.Start, m.Path, err)
			continue
		}
		read += len(got)
		if !bytes.Equal(bytes.ReplaceAll(want, []byte(secret), bytes.Repeat([]byte("*"), len(secret))), bytes.ReplaceAll(got, []byte(secret), bytes.Repeat([]byte("*"), len(secret)))) {
			t.Errorf("%v %s: other memory", m.Start, m.Path)
		}
	}
	if read < 2<<20 {
		t.Errorf("only %d bytes were compared", read)
	}
	if len(kept.Modules) != len(whole.Modules) || len(kept.Threads) != len(whole.Threads) || kept.Failing != whole.Failing {
		t.Errorf("%d modules, %d threads; whole: %d, %d", len(kept.Modules), len(kept.Threads), len(whole.Modules), len(whole.Threads))
	}
	if len(kept.AllLimits()) != len(whole.AllLimits()) {
		t.Errorf("limits %+v; whole: %+v", kept.AllLimits(), whole.AllLimits())
	}
}

// TestGDB: gdb reads the kept core, and finds in the files the memory that was left out.
func TestGDB(t *testing.T) {
	crashtest.NeedKernelCores(t)
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip("not supported here: gdb is not installed")
	}
	withFiles(t)
	exe := compile(t, "gcc", "-O1", "-Wl,--build-id")
	core := crashtest.Core(t, exe, crashtest.Run{Env: []string{"DB_PASSWORD=" + secret}})
	outcome := handle(t, newSpool(t), core, Crash{PID: 1 << 30, Signal: 11})
	unpacked := filepath.Join(t.TempDir(), "core")
	if out, err := exec.Command("zstd", "-q", "-d", filepath.Join(outcome.Dir, collected.CoreName), "-o", unpacked).CombinedOutput(); err != nil {
		t.Skipf("not supported here: zstd: %v, %s", err, out)
	}
	show := func(core string) string {
		out, err := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "bt", "-ex", "info registers rip rsp",
			"-ex", "x/20i main", "-ex", "x/s table", "-ex", "x/4xb &table[131072]", "-ex", "x/4xg &_r_debug", exe, core).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	want, got := show(core), show(unpacked)
	if !strings.Contains(want, "by_null") || got != want {
		t.Errorf("gdb says\n%s\nof the kept core, and of the whole one\n%s", got, want)
	}
}

// live is a process that waits, and a core of it.
type live struct {
	cmd  *exec.Cmd
	core string
}

// hold runs the program up to its line, stopped, and has gdb write its core: the process is there
// as long as the kernel would hold it.
func hold(t *testing.T, args ...string) live {
	t.Helper()
	withFiles(t)
	if _, err := exec.LookPath("gcore"); err != nil {
		t.Skip("not supported here: gcore is not installed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "DB_PASSWORD="+secret, "PLAIN=text")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	ready := make([]byte, 6)
	if _, err := out.Read(ready); err != nil {
		t.Fatal(err)
	}
	l := live{cmd, filepath.Join(t.TempDir(), "core")}
	if text, err := exec.Command("gcore", "-o", l.core, fmt.Sprint(cmd.Process.Pid)).CombinedOutput(); err != nil {
		t.Skipf("not supported here: gcore: %v\n%s", err, text)
	}
	l.core += fmt.Sprintf(".%d", cmd.Process.Pid)
	reorder(t, l.core)
	return l
}

// reorder puts the notes of gdb's core before the memory, where the kernel writes them.
func reorder(t *testing.T, path string) {
	t.Helper()
	core, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var h elf.Header64
	if _, err := binary.Decode(core, binary.LittleEndian, &h); err != nil {
		t.Fatal(err)
	}
	programs := make([]elf.Prog64, h.Phnum)
	if _, err := binary.Decode(core[h.Phoff:], binary.LittleEndian, programs); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(programs, func(a, b elf.Prog64) int { return int(b.Type) - int(a.Type) }) // PT_NOTE is 4, PT_LOAD 1
	h.Phoff, h.Shoff, h.Shnum, h.Shstrndx = 64, 0, 0, 0
	at := uint64(64 + 56*len(programs))
	var contents []byte
	for i := range programs {
		p := &programs[i]
		contents = append(contents, core[p.Off:p.Off+p.Filesz]...)
		p.Off = at
		at += p.Filesz
	}
	b, err := binary.Append(nil, binary.LittleEndian, &h)
	if err == nil {
		b, err = binary.Append(b, binary.LittleEndian, programs)
	}
	if err == nil {
		err = os.WriteFile(path, append(b, contents...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLive: the process is read: its files, though they were removed, and its environment, whose
// secrets are nowhere in the core.
func TestLive(t *testing.T) {
	exe := compile(t, "gcc", "-O1", "-Wl,--build-id")
	l := hold(t, exe)
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	checkLive(t, l, exe)
}

// TestNamespace: the process's files are those of its own mount namespace.
func TestNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not supported here: a mount namespace needs root")
	}
	exe, hidden := compile(t, "gcc", "-O1", "-Wl,--build-id"), t.TempDir()
	inside := filepath.Join(hidden, "server")
	l := hold(t, "unshare", "--mount", "sh", "-ec", `mount -t tmpfs none "$0"; cp "$1" "$0/server"; exec "$0/server"`, hidden, exe)
	if _, err := os.Stat(inside); err == nil {
		t.Fatal("the program is visible outside")
	}
	checkLive(t, l, inside)
}

func checkLive(t *testing.T, l live, exe string) {
	t.Helper()
	whole, err := os.ReadFile(l.core)
	if err != nil || !bytes.Contains(whole, []byte(secret)) {
		t.Fatalf("the whole core has no secret: %v", err)
	}
	outcome := handle(t, newSpool(t), l.core, Crash{PID: l.cmd.Process.Pid, TID: l.cmd.Process.Pid, Signal: 11})
	facts := outcome.Facts
	if outcome.Dir == "" {
		t.Fatalf("not kept: %s", outcome.Refused)
	}
	if strings.TrimSuffix(facts.Program, " (deleted)") != exe || facts.BuildID == "" || !facts.Redacted.Everywhere || facts.Redacted.Places < 2 || len(facts.Objects) < 3 || len(facts.Lacking) > 0 {
		t.Errorf("%+v", facts)
	}
	p := openCore(t, filepath.Join(outcome.Dir, collected.CoreName))
	defer p.Close()
	if p.Exe == nil || p.Exe.BuildID != facts.BuildID || !strings.HasPrefix(p.Exe.File, outcome.Dir) {
		t.Errorf("the executable is %+v", p.Exe)
	}
	for _, m := range p.Mappings {
		b := make([]byte, m.End-m.Start)
		n, _ := p.ReadMemory(m.Start, b)
		if at := bytes.Index(b[:n], []byte(secret)); at >= 0 {
			t.Errorf("the secret is at %v in %s", m.Start+evidence.Addr(at), m.Path)
		}
	}
}
