package replay_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// built compiles C to a library, or to a program if name has no suffix.
func built(t *testing.T, name, text string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, out := filepath.Join(dir, "source.c"), filepath.Join(dir, name)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(name) == ".so" {
		flags = append(flags, "-shared", "-fPIC")
	}
	if text, err := exec.Command("cc", append([]string{"-g", "-O1", "-o", out, source}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// touching returns code that creates a file, as early as a library's code can.
func touching(file string) string {
	return `
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((constructor(101))) static void begin(void) { close(open("` + file + `", O_WRONLY | O_CREAT, 0600)); mkdir("` + file + `-dir", 0700); }
unsigned la_version(unsigned v) { begin(); return v; }
int touching_value = 1;
`
}

const crashing = `
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) { puts(argv[0]); abort(); }
`

// TestForeignEnvironment: variables that the recorded start does not confirm neither load code nor
// write files.
func TestForeignEnvironment(t *testing.T) {
	program := built(t, "crashing", crashing)
	dir := recordtest.RecordProgram(t, program, nil, "", "SIGABRT").Dir
	marks := t.TempDir()
	mark := filepath.Join(marks, "mark")
	evil := built(t, "evil.so", touching(mark))
	libraries := t.TempDir()
	if err := os.Symlink(evil, filepath.Join(libraries, "libc.so.6")); err != nil {
		t.Fatal(err)
	}
	brought := filepath.Join(dir, "objects", "evil.so")
	if err := errors.Join(os.Mkdir(filepath.Dir(brought), 0o700), copyFile(evil, brought)); err != nil {
		t.Fatal(err)
	}
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environ []string
		says    string // empty: it is replayed
	}{
		"audit":             {[]string{"LD_AUDIT=" + evil}, "LD_AUDIT"},
		"audit beside":      {[]string{"LD_AUDIT=" + brought}, "LD_AUDIT"},
		"library path":      {[]string{"LD_LIBRARY_PATH=" + libraries}, "LD_LIBRARY_PATH"},
		"debug output":      {[]string{"LD_DEBUG=all", "LD_DEBUG_OUTPUT=" + mark}, ""},
		"profile":           {[]string{"LD_PROFILE=libc.so.6", "LD_PROFILE_OUTPUT=" + marks, "LD_BIND_NOW="}, ""},
		"malloc trace":      {[]string{"MALLOC_TRACE=" + mark}, ""},
		"converters":        {[]string{"GCONV_PATH=" + libraries}, ""},
		"locales, messages": {[]string{"LOCPATH=" + libraries, "NLSPATH=" + libraries + "/%N"}, ""},
		"the agent's log":   {[]string{"DIAGNOSE_OPTIONS=log_path=" + mark + ":no=1"}, ""},
		"show auxv":         {[]string{"LD_SHOW_AUXV=1"}, ""},
		"traced objects":    {[]string{"LD_TRACE_LOADED_OBJECTS=1"}, "before the recorder started"},
	} {
		t.Run(name, func(t *testing.T) {
			foreign := *m
			foreign.Program.Environ = slices.Clone(m.Program.Environ)
			replaceVariables(&foreign, c.environ)
			err := replayedAs(t, dir, &foreign)
			var input *replay.InputError
			switch {
			case c.says == "" && errors.As(err, &input) && !strings.Contains(err.Error(), "starts otherwise"):
				t.Error(err)
			case c.says != "" && (!errors.As(err, &input) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %q", err, c.says)
			}
			if list, err := os.ReadDir(marks); err != nil || len(list) > 0 {
				t.Errorf("not removed: %v, %v", list, err)
				os.RemoveAll(mark)
				os.RemoveAll(mark + "-dir")
			}
		})
	}
}

// TestForeignProgram: a program that a manifest names instead of the recorded one, or that does
// not load the recorder, cannot do anything.
func TestForeignProgram(t *testing.T) {
	program := built(t, "crashing", crashing)
	dir := recordtest.RecordProgram(t, program, nil, "", "SIGABRT").Dir
	marks := t.TempDir()
	mark := filepath.Join(marks, "mark")
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := built(t, "other", touching(mark)+"int main(void) { begin(); }")
	static := built(t, "static", touching(mark)+"int main(void) { begin(); }", "-static")
	unnamed := func(x *record.Manifest, path string) {
		x.Program.Path, x.Program.BuildID, x.Program.File = record.Text(path), "", record.File{}
	}
	for name, change := range map[string]func(x *record.Manifest){
		"another program executed": func(x *record.Manifest) { x.Program.Executed = record.Text(other) },
		"another program":          func(x *record.Manifest) { unnamed(x, other) },
		"no recorder":              func(x *record.Manifest) { x.Program.Environ = nil },
		"statically linked": func(x *record.Manifest) {
			unnamed(x, static)
			x.Start.Mappings = append([]record.Mapping{{Start: 0x400000, End: 0x401000, Permissions: "r-xp", Path: record.Text(static)}}, x.Start.Mappings...)
		},
		"the recording's own file": func(x *record.Manifest) {
			own := filepath.Join(dir, "objects", "other")
			if err := errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), copyFile(other, own)); err != nil {
				t.Fatal(err)
			}
			unnamed(x, own)
		},
		"no mappings": func(x *record.Manifest) { x.Start.Mappings = nil },
	} {
		t.Run(name, func(t *testing.T) {
			foreign := *m
			change(&foreign)
			var input *replay.InputError
			if err := replayedAs(t, dir, &foreign); !errors.As(err, &input) {
				t.Errorf("%v, want an *InputError", err)
			}
			if list, err := os.ReadDir(marks); err != nil || len(list) > 0 {
				t.Errorf("not removed: %v, %v", list, err)
			}
		})
	}
}

// TestForeignDevices: devices and pipes that the environment names are not opened.
func TestForeignDevices(t *testing.T) {
	program := built(t, "crashing", crashing)
	dir := recordtest.RecordProgram(t, program, nil, "", "SIGABRT").Dir
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := t.TempDir()
	pipe, device := filepath.Join(names, "libc.so.6"), filepath.Join(names, "device")
	linked, relative := filepath.Join(names, "linked"), filepath.Join(names, "here")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Mkdir(relative, 0o700)); err != nil {
		t.Fatal(err)
	}
	kernelLog := int(unix.Mkdev(1, 11)) // a device that can be read without harm
	if err := unix.Mknod(device, unix.S_IFCHR|0o600, kernelLog); errors.Is(err, unix.EPERM) {
		device = "/dev/kmsg"
	} else if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(device, linked); err != nil {
		t.Fatal(err)
	}
	// A process that opens the pipe nevertheless reads this and does not block.
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := writer.WriteString(strings.Repeat("This is no library.\n", 200)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, variable, opened string }{
		{"pipe", "LD_PRELOAD=" + pipe, pipe},
		{"pipe in a directory", "LD_LIBRARY_PATH=" + names, pipe},
		{"pipe by a relative name", "LD_PRELOAD=../libc.so.6", pipe},
		{"pipe by an open file", fmt.Sprintf("LD_PRELOAD=/proc/%d/fd/%d", os.Getpid(), writer.Fd()), pipe},
		{"device", "LD_PRELOAD=" + device, device},
		{"device by a link", "LD_AUDIT=" + linked, device},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(watch)
			if _, err := unix.InotifyAddWatch(watch, c.opened, unix.IN_OPEN); err != nil {
				t.Fatal(err)
			}
			foreign := *m
			foreign.Program.Environ = slices.Clone(m.Program.Environ)
			replaceVariables(&foreign, []string{c.variable})
			foreign.Program.Directory = record.Text(relative)
			// The start may differ because the variable moves data on the stack.
			if err := replayedAs(t, dir, &foreign); err == nil {
				t.Error("no error")
			}
			if n, err := unix.Read(watch, make([]byte, 4096)); err != unix.EAGAIN {
				t.Errorf("%s was opened: %d bytes of events, %v", c.opened, n, err)
			}
		})
	}
}

// TestForeignSharedFiles: a file that all users may change must have the recorded contents.
func TestForeignSharedFiles(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libvalue.so")
	other := built(t, "libvalue.so", "int touching_value = 2;", "-Wl,--build-id=0x1234")
	if err := copyFile(built(t, "libvalue.so", "int touching_value = 1;", "-Wl,--build-id=0x1234"), library); err != nil {
		t.Fatal(err)
	}
	program := built(t, "program", "extern int touching_value;\n"+strings.Replace(crashing, "abort()", "if (touching_value) abort()", 1), library)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	recorded := recordtest.RecordProgram(t, program, nil, "", "SIGABRT").Dir
	recordtest.Identical(t, recorded, 1)

	m, err := record.ReadManifest(recorded)
	if err != nil {
		t.Fatal(err)
	}
	foreign := *m
	foreign.Start.Mappings = slices.Clone(m.Start.Mappings)
	for i, x := range foreign.Start.Mappings {
		if string(x.Path) == library {
			file := *x.File
			file.SHA256 = ""
			foreign.Start.Mappings[i].File = &file
		}
	}
	var input *replay.InputError
	if err := replayedAs(t, recorded, &foreign); !errors.As(err, &input) || !strings.Contains(err.Error(), "no digest of it") {
		t.Errorf("without a digest: %v", err)
	}
	// Another library of the same size and time replaces it.
	info, err := os.Stat(library)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(library), copyFile(other, library), os.Truncate(library, info.Size()), os.Chtimes(library, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if err := replayedAs(t, recorded, m); !errors.As(err, &input) || !strings.Contains(err.Error(), "another digest") {
		t.Errorf("replaced: %v", err)
	}
	// In a directory that only the owner may write, the size and the time suffice.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := replayedAs(t, recorded, m); errors.As(err, &input) && strings.Contains(err.Error(), "digest") {
		t.Errorf("not shared: %v", err)
	}
}

// TestOwnEnvironment: recordings of programs that were really run with such variables replay to
// the same memory.
func TestOwnEnvironment(t *testing.T) {
	marks := t.TempDir()
	library := built(t, "libvalue.so", "int touching_value = 1;")
	auditor := built(t, "auditor.so", "unsigned la_version(unsigned v) { return v; }")
	program := built(t, "program", "extern int touching_value;\n"+strings.Replace(crashing, "abort()", "if (touching_value) abort()", 1),
		library, "-Wl,--disable-new-dtags")
	plain := built(t, "plain", crashing)
	for name, c := range map[string]struct {
		program string
		environ []string
	}{
		"library path": {program, []string{"LD_LIBRARY_PATH=" + t.TempDir() + ":" + filepath.Dir(library)}},
		"preload":      {plain, []string{"LD_PRELOAD=" + library}},
		"audit":        {plain, []string{"LD_AUDIT=" + auditor}},
		"debug output": {plain, []string{"LD_DEBUG=libs", "LD_DEBUG_OUTPUT=" + filepath.Join(marks, "debug")}},
		"tunables":     {plain, []string{"GLIBC_TUNABLES=glibc.malloc.check=3:glibc.malloc.tcache_count=5"}},
		"malloc trace": {plain, []string{"MALLOC_TRACE=" + filepath.Join(marks, "trace"), "LOCPATH=/nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := recorder.Options{Path: c.program, Args: []string{c.program}, Library: recordtest.Library(t), Output: t.TempDir(), All: true}
			recorded.Environ = agent.RecordEnvironment(append(os.Environ(), c.environ...), recorded.Library, nil)
			r, err := recorder.Run(t.Context(), recorded)
			if err != nil || r.Dir == "" {
				t.Fatalf("%+v, %v", r, err)
			}
			before, _ := os.ReadDir(marks)
			recordtest.Identical(t, r.Dir, 2)
			if after, _ := os.ReadDir(marks); len(after) != len(before) {
				t.Errorf("files before the replays %v, after them %v", before, after)
			}
		})
	}
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}

// replaceVariables sets variables of the recorded environment.
func replaceVariables(m *record.Manifest, environ []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		m.Program.Environ = slices.DeleteFunc(m.Program.Environ, func(x record.Text) bool { return strings.HasPrefix(string(x), name+"=") })
		m.Program.Environ = append(m.Program.Environ, record.Text(v))
	}
}

// replayedAs replays a recording with another manifest. The part after its start may diverge.
func replayedAs(t *testing.T, dir string, m *record.Manifest) error {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	rec.Manifest = m
	_, err = replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager}})
	return err
}
