package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/image/object"
)

// target is a core and the program that left it. debugDir, if set, is where
// all tools are told to look for separate debug files first.
type target struct{ exe, core, debugDir string }

// workload is a core to measure on.
type workload struct {
	name, what string
	prepare    func(dir string) (target, error)
}

var workloads = []workload{
	{"three-threads", "a program of 3 threads", threads("2", "0")},
	{"200-threads", "a program of 200 threads", threads("199", "0")},
	{"gigabyte", "a core of 1.2 GB", threads("2", "1200")},
	{"jvm", "the Java virtual machine with Debian's openjdk-17-dbg, whose DWARF is compressed", jvm},
	{"jvm-plain", "the same core with libjvm's DWARF uncompressed", jvmPlain},
}

// threads crashes bench/programs/threads.c.
func threads(args ...string) func(string) (target, error) {
	return func(dir string) (target, error) {
		t := target{exe: filepath.Join(dir, "threads"), core: filepath.Join(dir, "core")}
		if exists(t.core) {
			return t, nil
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return t, err
		}
		out, err := exec.Command("gcc", "-g", "-O1", "-pthread", "-o", t.exe, "bench/programs/threads.c").CombinedOutput()
		if err != nil {
			return t, fmt.Errorf("gcc: %w\n%s", err, out)
		}
		return t, crash(exec.Command(t.exe, args...), dir, t.core, 0)
	}
}

// jvm has a Java program aborted from outside.
func jvm(dir string) (target, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return target{}, err
	}
	if java, err = filepath.EvalSymlinks(java); err != nil {
		return target{}, err
	}
	t := target{exe: java, core: filepath.Join(dir, "core")}
	if exists(t.core) {
		return t, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return t, err
	}
	const startUp = 5 * time.Second
	cmd := exec.Command(java, "-Xmx64m", "-m", "java.rmi/sun.rmi.registry.RegistryImpl", "0")
	return t, crash(cmd, dir, t.core, startUp)
}

// jvmPlain shares the core of jvm and has a copy of libjvm's debug file that
// needs no decompression.
func jvmPlain(dir string) (target, error) {
	t, err := jvm(filepath.Join(filepath.Dir(dir), "jvm"))
	if err != nil {
		return t, err
	}
	lib := filepath.Join(filepath.Dir(filepath.Dir(t.exe)), "lib", "server", "libjvm.so")
	id := object.BuildIDOf(lib)
	if len(id) < 3 {
		return t, fmt.Errorf("%s has no build-id", lib)
	}
	name := filepath.Join(".build-id", id[:2], id[2:]+".debug")
	t.debugDir = dir
	plain := filepath.Join(dir, name)
	if exists(plain) {
		return t, nil
	}
	if err := os.MkdirAll(filepath.Dir(plain), 0o755); err != nil {
		return t, err
	}
	out, err := exec.Command("objcopy", "--decompress-debug-sections", filepath.Join("/usr/lib/debug", name), plain).CombinedOutput()
	if err != nil {
		return t, fmt.Errorf("objcopy: %w\n%s", err, out)
	}
	return t, nil
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// crash runs cmd until it leaves a core; after is when it is sent SIGABRT if
// it does not crash by itself.
func crash(cmd *exec.Cmd, dir, core string, after time.Duration) error {
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unlimited); err != nil {
		return fmt.Errorf("cores are not allowed here: %w", err)
	}
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		return err
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { cmd.Process.Signal(syscall.SIGABRT) })
		defer timer.Stop()
	}
	err := cmd.Wait()
	found, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(found) == 0 {
		return fmt.Errorf("%s left no core (%v): is core_pattern a plain file name?", cmd.Path, err)
	}
	if found[0] == core {
		return nil
	}
	return os.Rename(found[0], core)
}
