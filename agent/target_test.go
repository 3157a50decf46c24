package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const empty = "int main(void) { return 0; }\n"

// program compiles C text; a compiler that cannot do it here skips the test.
func program(t *testing.T, text string, args ...string) string {
	t.Helper()
	needCompiler(t, "gcc")
	dir := t.TempDir()
	source, out := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
	writeFile(t, source, 0o600, text)
	if said, err := exec.Command("gcc", append([]string{"-w", source, "-o", out}, args...)...).CombinedOutput(); err != nil {
		t.Skip(&UnsupportedError{fmt.Sprintf("gcc %s: %v\n%s", strings.Join(args, " "), err, said)})
	}
	return out
}

// script writes an executable file.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	writeFile(t, path, 0o755, text)
	return path
}

// patched is a copy of a program with other bytes at an offset.
func patched(t *testing.T, path string, at int, with ...byte) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(data[at:], with)
	out := filepath.Join(t.TempDir(), "patched")
	writeFile(t, out, 0o755, string(data))
	return out
}

func refused(t *testing.T, name, want string) {
	t.Helper()
	got, err := FindTarget(name)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %+v, %v, want %q", name, got, err, want)
	}
}

func taken(t *testing.T, name, file string, warnings ...string) {
	t.Helper()
	got, err := FindTarget(name)
	if err != nil || got.File != file || len(got.Warnings) != len(warnings) {
		t.Errorf("%s: %+v, %v, want %s with warnings %q", name, got, err, file, warnings)
		return
	}
	for i, want := range warnings {
		if !strings.Contains(got.Warnings[i], want) {
			t.Errorf("%s: warning %q, want %q", name, got.Warnings[i], want)
		}
	}
}

func TestTargets(t *testing.T) {
	for _, path := range []string{program(t, empty), program(t, empty, "-no-pie", "-s")} {
		taken(t, path, path)
	}
	// glibc's dynamic linker is a program that runs another one.
	if linker := "/lib64/ld-linux-x86-64.so.2"; isProgram(linker) {
		taken(t, linker, linker)
	}
}

func TestStaticTargets(t *testing.T) {
	for _, flags := range [][]string{{"-static"}, {"-static-pie"}, {"-static", "-s"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			static := program(t, empty, flags...)
			refused(t, static, static+" is statically linked")
		})
	}
}

func TestGoTarget(t *testing.T) {
	dir := t.TempDir()
	source, out := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	writeFile(t, source, 0o600, "package main\n\nfunc main() {}\n")
	build := exec.Command("go", "build", "-o", out, source)
	build.Dir = dir
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	refused(t, out, "statically linked Go program")
}

func TestForeignTargets(t *testing.T) {
	dynamic := program(t, empty)
	machine := func(number uint16) []byte { return binary.LittleEndian.AppendUint16(nil, number) }
	refused(t, patched(t, dynamic, 18, machine(183)...), "another processor (AARCH64)")
	refused(t, patched(t, dynamic, 16, 1, 0), "is no program (ET_REL)")
	refused(t, program(t, "void _start(void) {}", "-m32", "-nostdlib", "-static"), "is a 32-bit program")
	refused(t, program(t, empty, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"), "is linked with musl")
	refused(t, program(t, empty, "-Wl,--dynamic-linker=/system/bin/linker64"), "a dynamic linker (/system/bin/linker64) that is not glibc's")
	refused(t, script(t, "echo no first line\n"), "neither an ELF program nor a script")
	refused(t, script(t, "\x7fELF"), "neither an ELF program nor a script")
	refused(t, program(t, empty, "-fsanitize=address"), "is built with a sanitizer (libasan.so")
}

func TestTargetNotFound(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeFile(t, "tool", 0o755, "#!/bin/sh\n")
	writeFile(t, "data", 0o644, "#!/bin/sh\n")
	refused(t, "no-such-program", "no-such-program is not in PATH")
	refused(t, "tool", "tool is not in PATH; did you mean ./tool?")
	refused(t, "./missing", "./missing cannot be run: stat ./missing: no such file or directory")
	refused(t, "./data", "./data cannot be run: permission denied")
	refused(t, dir, "is a directory")
	t.Setenv("PATH", ".")
	if got, err := FindTarget("tool"); err != nil || got.Path != "./tool" && got.Path != "tool" {
		t.Errorf("with . in PATH: %+v, %v", got, err)
	}
}

func TestScripts(t *testing.T) {
	dynamic, static := program(t, empty), program(t, empty, "-static")
	taken(t, script(t, "#!"+dynamic+"\n"), dynamic)
	taken(t, script(t, "#! \t"+dynamic+" -x y\nrest"), dynamic)
	taken(t, script(t, "#!"+dynamic), dynamic)
	refused(t, script(t, "#!"+static+"\n"), "is run by another program: "+static+" is statically linked")
	refused(t, script(t, "#!"+script(t, "#!"+static+"\n")+"\n"), static+" is statically linked")
	refused(t, script(t, "#!/no/such/interpreter\n"), `its first line "/no/such/interpreter": stat /no/such/interpreter: no such file`)
	refused(t, script(t, "#!\n"), "its first line names no interpreter")
	t.Setenv("PATH", filepath.Dir(static)+":"+os.Getenv("PATH"))
	refused(t, script(t, "#!/usr/bin/env prog\n"), static+" is statically linked")
	refused(t, script(t, "#!/usr/bin/env -S A=b prog -x\n"), static+" is statically linked")
}

// As many scripts may interpret each other as the kernel lets.
func TestScriptDepth(t *testing.T) {
	path := program(t, empty)
	file := path
	for depth := range scriptDepth {
		path = script(t, "#!"+path+"\n")
		if err := exec.Command(path).Run(); err != nil {
			t.Fatalf("the kernel does not run %d scripts: %v", depth+1, err)
		}
		taken(t, path, file)
	}
	path = script(t, "#!"+path+"\n")
	if err := exec.Command(path).Run(); !errors.Is(err, unix.ELOOP) {
		t.Errorf("the kernel runs %d scripts: %v", scriptDepth+1, err)
	}
	refused(t, path, "more than 5 scripts interpret each other")
}

const ownMalloc = `
#include <stddef.h>
static char pool[1 << 20];
static size_t used;
void *malloc(size_t n) { void *p = pool + used; used += (n + 15) & ~15ul; return p; }
void free(void *p) {}
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { return malloc(n); }
int main(void) { return malloc(7) == NULL; }
`

func TestTargetsWithMalloc(t *testing.T) {
	for name, flags := range map[string][]string{
		"exported": nil, "stripped": {"-s"}, "hidden": {"-fvisibility=hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			own := program(t, ownMalloc, flags...)
			taken(t, own, own, own+" has a malloc of its own")
		})
	}
	// To call malloc, or to define something that ends alike, is no reason.
	calls := program(t, "#include <stdlib.h>\nvoid *xmalloc(long n) { return malloc(n); }\nint main(void) { return !xmalloc(7); }\n", "-rdynamic")
	taken(t, calls, calls)
}

// rightful is a program in a directory that every user may look into.
func rightful(t *testing.T, uid, gid int, mode fs.FileMode) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip(&UnsupportedError{"only root can make programs that gain rights"})
	}
	path := program(t, empty)
	if err := errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755),
		os.Chown(path, uid, gid), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	if !gainsPossible(path) {
		t.Skip(&UnsupportedError{"no program can gain rights here (nosuid or no_new_privs)"})
	}
	return path
}

func TestPrivilegedTargets(t *testing.T) {
	refused(t, rightful(t, 65534, 0, 0o755|fs.ModeSetuid), "gains rights when it is run (set-user-ID, to user 65534)")
	refused(t, rightful(t, 0, 65534, 0o755|fs.ModeSetgid), "gains rights when it is run (set-group-ID, to group 65534)")
	for name, path := range map[string]string{
		"set-user-ID of the very user":  rightful(t, 0, 0, 0o755|fs.ModeSetuid),
		"mandatory locking":             rightful(t, 0, 65534, 0o745|fs.ModeSetgid),
		"set-group-ID of the very user": rightful(t, 0, os.Getgid(), 0o755|fs.ModeSetgid),
	} {
		if _, err := FindTarget(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, script(t, "#!"+rightful(t, 65534, 0, 0o755|fs.ModeSetuid)+"\n"), "set-user-ID")
}

// asNobody calls f in a thread without root's rights, which ends with it.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		_, _, number := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534)
		if number == 0 {
			f()
			done <- nil
			return
		}
		done <- number
	}()
	if err := <-done; err != nil {
		t.Skip(&UnsupportedError{"setresuid: " + err.Error()})
	}
}

func TestTargetsOfUsers(t *testing.T) {
	setuid := rightful(t, 0, 0, 0o755|fs.ModeSetuid)
	capable, secret := rightful(t, 0, 0, 0o755), rightful(t, 0, 0, 0o711)
	// struct vfs_cap_data, revision 2: CAP_NET_RAW, permitted and effective.
	capabilities := make([]byte, 20)
	binary.LittleEndian.PutUint32(capabilities, 0x02000001)
	binary.LittleEndian.PutUint32(capabilities[4:], 1<<13)
	capErr := unix.Setxattr(capable, "security.capability", capabilities, 0)
	asNobody(t, func() {
		refused(t, setuid, "set-user-ID, to user 0")
		taken(t, secret, secret, "cannot be read")
		if capErr == nil {
			refused(t, capable, "file capabilities")
		}
	})
	if capErr != nil {
		t.Skip(&UnsupportedError{"setxattr: " + capErr.Error()})
	}
	taken(t, capable, capable) // root gains nothing by it
}
