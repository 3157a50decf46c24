package privateroot_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/fleet/privateroot"
	"diagnose/replay/record"
)

func TestMain(m *testing.M) {
	privateroot.Init()
	status := m.Run()
	os.RemoveAll(toolDir)
	os.Exit(status)
}

// otherUser is the user that the tests' replays run as if they are started by root.
const otherUser = 65534

// publicDir returns a new directory that all users may enter, as the private root's user must.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "private-root-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// toolDir has the command that buildTool has built, for all users.
var toolDir string

var buildTool = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "private-root-tool-")
	if err != nil {
		return nil, err
	}
	toolDir = dir
	build := exec.Command("go", "build", "-tags=netgo,osusergo", "-o", filepath.Join(dir, "diagnose"), "diagnose/cmd/diagnose")
	said, err := build.CombinedOutput()
	return said, errors.Join(err, os.Chmod(dir, 0o755))
})

// tool returns the command, built without shared libraries.
func tool(t *testing.T) string {
	t.Helper()
	if said, err := buildTool(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return filepath.Join(toolDir, "diagnose")
}

// compile compiles C in a directory.
func compile(t *testing.T, dir, name, text string, flags ...string) string {
	t.Helper()
	source, out := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("cc", append([]string{"-g", "-O1", "-o", out, source}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// ledger fails because a library that it opens later stores a null pointer, which a library that it
// is linked with reads. Both are asked for by other names than the files have.
const ledger = `
#include <dlfcn.h>
#include <stdlib.h>
int total(void);
int *entry;
int main(int argc, char **argv) {
    static int first = 7;
    entry = &first;
    void *clear = dlopen(argv[1], RTLD_NOW);
    if (!clear) exit(3);
    ((void (*)(void)) dlsym(clear, "clear"))();
    return total() != 7;
}
`

// recordLedger records the program and removes all of its files.
func recordLedger(t *testing.T, dir, diagnose string, options ...string) string {
	t.Helper()
	own := filepath.Join(dir, "installed")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	clear := compile(t, own, "libclear.so.1.2.3", "extern int *entry; void clear(void) { entry = 0; }", "-shared", "-fPIC", "-Wl,-soname,libclear.so.1")
	total := compile(t, own, "libtotal.so.4.5", "extern int *entry; int total(void) { return *entry; }", "-shared", "-fPIC", "-Wl,-soname,libtotal.so.4")
	for _, library := range []string{clear, total} {
		base := filepath.Base(library)
		if err := os.Symlink(base, filepath.Join(own, base[:strings.Index(base, ".so.")+5])); err != nil {
			t.Fatal(err)
		}
	}
	program := compile(t, own, "ledger", ledger, total, "-Wl,-rpath,"+own, "-rdynamic")
	output := filepath.Join(dir, "recordings")
	args := append([]string{"record", "--output", output}, options...)
	out, err := exec.Command(diagnose, append(args, "--", program, filepath.Join(own, "libclear.so.1"))...).CombinedOutput()
	recording := filepath.Join(output, "ledger-0001-SIGSEGV")
	if _, e := os.Stat(recording); e != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.RemoveAll(own); err != nil {
		t.Fatal(err)
	}
	return recording
}

// runInside runs the tool in a root.
func runInside(t *testing.T, diagnose string, root *privateroot.Root, args ...string) string {
	t.Helper()
	cmd := exec.Command(diagnose, args...)
	root.Tool = diagnose
	err := root.Wrap(cmd, otherUser, otherUser)
	var unsupported *privateroot.UnsupportedError
	if errors.As(err, &unsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) || strings.Contains(string(out), "operation not permitted") {
		t.Skipf("no namespaces of one's own here: %v: %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// allowAll gives a directory's files to the user of the private root.
func allowAll(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, otherUser, otherUser))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplayElsewhere: a portable recording is diagnosed where none of the program's files are, as
// another user and without a network.
func TestReplayElsewhere(t *testing.T) {
	dir := publicDir(t)
	diagnose := tool(t)
	recording := recordLedger(t, dir, diagnose, "--portable")
	root, err := privateroot.Build(t.Context(), filepath.Join(dir, "root"), privateroot.Sources{Recordings: []string{recording}})
	if err != nil {
		t.Fatal(err)
	}
	allowAll(t, filepath.Dir(recording))
	report := runInside(t, diagnose, root, "crash", "--recording", recording)
	for _, want := range []string{"clear", "libclear.so.1.2.3", "proved"} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in %s", want, report)
		}
	}
}

// TestInside is run by TestIsolation, in a root.
func TestInside(t *testing.T) {
	if _, err := os.Stat("/.diagnose"); err != nil {
		t.Skip("it is run by TestIsolation")
	}
	links, err := net.Interfaces()
	for _, l := range links {
		if l.Flags&net.FlagUp != 0 {
			t.Errorf("the network %s is up", l.Name)
		}
	}
	if err != nil {
		t.Error(err)
	}
	list, err := os.ReadDir("/")
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); err != nil || strings.Contains(got, "home") || strings.Contains(got, "etc") || strings.Contains(got, "root") {
		t.Errorf("there are %s: %v", got, err)
	}
	if err := os.WriteFile("/written", nil, 0o600); err == nil {
		t.Error("the root can be changed")
	}
	if err := unix.Mount("tmpfs", "/.diagnose/tmp", "tmpfs", 0, ""); err == nil {
		t.Error("it can mount")
	}
	status, err := os.ReadFile("/proc/self/status")
	for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"} {
		if err != nil || !strings.Contains(string(status), want) {
			t.Errorf("no %q: %v", want, err)
		}
	}
	if value := os.Getenv("PRIVATE_ROOT_SECRET"); value != "" {
		t.Error("it has the environment")
	}
	if processes, err := filepath.Glob("/proc/[0-9]*"); err != nil || len(processes) != 2 {
		t.Errorf("it sees the processes %v: %v", processes, err)
	}
}

// TestIsolation: what runs in a root has no network, no files and no processes of this machine, and no
// right to change that.
func TestIsolation(t *testing.T) {
	dir := publicDir(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	tests := filepath.Join(dir, "tests")
	if err := os.WriteFile(tests, self, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := privateroot.Build(t.Context(), filepath.Join(dir, "root"), privateroot.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRIVATE_ROOT_SECRET", "hunter2")
	if out := runInside(t, tests, root, "-test.run", "^TestInside$", "-test.v"); !strings.Contains(out, "--- PASS: TestInside") {
		t.Error(out)
	}
}

// TestMissingObjects: without them a recording names what it lacks.
func TestMissingObjects(t *testing.T) {
	dir := publicDir(t)
	recording := recordLedger(t, dir, tool(t))
	_, err := privateroot.Build(t.Context(), filepath.Join(dir, "root"), privateroot.Sources{Recordings: []string{recording}})
	var missing *privateroot.MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("%v, want a MissingError", err)
	}
	var names []string
	for _, n := range missing.Needs {
		names = append(names, filepath.Base(n.Path))
	}
	if got := strings.Join(names, " "); got != "ledger libclear.so.1.2.3 libtotal.so.4.5" {
		t.Errorf("missing are %s", got)
	}
}

// TestHostileObjects: a recording can bring nothing to a place outside of the root, nor another
// file than the one whose digest it has.
func TestHostileObjects(t *testing.T) {
	dir := publicDir(t)
	recording := recordLedger(t, dir, tool(t), "--portable")
	m, err := record.ReadManifest(recording)
	if err != nil {
		t.Fatal(err)
	}
	own := m.Portable[0]
	changed := *m
	changed.Portable = append([]record.Object{{Path: own.Path, Stored: own.Stored, SHA256: strings.Repeat("0", 64)}}, m.Portable[1:]...)
	if err := changed.Write(recording); err != nil {
		t.Fatal(err)
	}
	if _, err := privateroot.Build(t.Context(), filepath.Join(dir, "digest"), privateroot.Sources{Recordings: []string{recording}}); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("another digest: %v", err)
	}
	for _, path := range []string{"/../outside", "/proc/self/mem", "/a/../../outside", "/dev/null", "relative"} {
		changed := *m
		o := own
		o.Path = record.Text(path)
		changed.Portable = append([]record.Object{o}, m.Portable...)
		if err := changed.Write(recording); err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(dir, "root-of-hostile")
		if _, err := privateroot.Build(t.Context(), root, privateroot.Sources{Recordings: []string{recording}}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "outside")); err == nil {
			t.Errorf("%s: it was written", path)
		}
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
	}
}
