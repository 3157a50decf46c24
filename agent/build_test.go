package agent

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// standIn is a library as small as one can be that is still taken for the
// agent.
func standIn(text string) fs.FS {
	return fstest.MapFS{
		"agent.c":   {Data: []byte("#include \"agent.h\"\n" + text)},
		"agent.h":   {Data: []byte("#include <stdint.h>\n__attribute__((visibility(\"default\"))) uint64_t diagnose_agent_root = 17;\n")},
		"agent.map": {Data: []byte("{ global: diagnose_agent_root; local: *; };\n")},
		"glibc.h":   {},
	}
}

// countingCompiler is a script before a real compiler, and how often it ran.
func countingCompiler(t *testing.T, name string) (command string, runs func() int) {
	t.Helper()
	needCompiler(t, name)
	dir := t.TempDir()
	command, log := filepath.Join(dir, "cc"), filepath.Join(dir, "log")
	writeFile(t, command, 0o700, "#!/bin/sh\necho run >>"+log+"\nexec "+name+" \"$@\"\n")
	return command, func() int {
		text, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
}

func needCompiler(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(&UnsupportedError{name + " is not installed"})
	}
}

func writeFile(t *testing.T, path string, mode fs.FileMode, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

func build(t *testing.T, o BuildOptions) Built {
	t.Helper()
	built, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func TestBuildOnce(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			cc, runs := countingCompiler(t, compiler)
			place := filepath.Join(t.TempDir(), "cache", "agent")
			o := BuildOptions{Sources: standIn(""), Compiler: cc, Places: []string{place}}
			first, second := build(t, o), build(t, o)
			if first != second || first.Note != "" || runs() != 1 {
				t.Errorf("%+v, then %+v, the compiler ran %d times", first, second, runs())
			}
			if err := checkLibrary(first.Path); err != nil {
				t.Error(err)
			}
			for path, want := range map[string]fs.FileMode{first.Path: 0o400, filepath.Dir(first.Path): 0o700, place: 0o700, filepath.Dir(place): 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, %v, want mode %#o", path, info, err, want)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(first.Path), ".*")); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// The agent itself: no warnings, nothing but libc, and it works.
func TestBuildTheAgent(t *testing.T) {
	for _, x := range []struct {
		compiler  string
		recording bool
	}{{"gcc", false}, {"clang", false}, {"gcc", true}, {"clang", true}} {
		t.Run(fmt.Sprintf("%s,recording=%v", x.compiler, x.recording), func(t *testing.T) {
			needCompiler(t, x.compiler)
			path := build(t, BuildOptions{
				Recording: x.recording, Compiler: x.compiler + warnings, Places: []string{t.TempDir()},
			}).Path
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			libraries, err := f.ImportedLibraries()
			if err != nil {
				t.Fatal(err)
			}
			for _, library := range libraries {
				if library != "libc.so.6" && library != "ld-linux-x86-64.so.2" {
					t.Errorf("it needs %s", library)
				}
			}
			// The agent's thread-local data must not be allocated at its first use.
			if flags, err := f.DynValue(elf.DT_FLAGS); err != nil || len(flags) != 1 || flags[0]&uint64(elf.DF_STATIC_TLS) == 0 {
				t.Errorf("flags %#x, %v: want initial-exec thread-local data", flags, err)
			}
			if f.Section(".note.gnu.build-id") == nil {
				t.Error("it has no build-id, by which a core's agent is known")
			}
			cmd := exec.Command(program(t, empty))
			cmd.Env = Environment(nil, path, Options{{"unheard_of", "1"}})
			if said, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(said), "unknown option name=unheard_of") {
				t.Errorf("a program with it: %v\n%s", err, said)
			}
		})
	}
}

const warnings = " -Wall -Wextra -Werror"

// What only the recording library has is no part of the other, and is all that
// the engine may consist of: general registers, no libc.
func TestProducts(t *testing.T) {
	sources := standIn("").(fstest.MapFS)
	digests := func() [2]string {
		var both [2]string
		for i, p := range []product{heapProduct, recordProduct} {
			d, err := p.digest(sources)
			if err != nil {
				t.Fatal(err)
			}
			both[i] = d
		}
		return both
	}
	before := digests()
	for _, name := range []string{"engine.c", "engine/x.c", "engine/engine.h", "wrap/x.c", "hunt/x.c", "record.h", "record.map"} {
		sources[name] = &fstest.MapFile{Data: []byte("changed")}
		after := digests()
		if after[0] != before[0] || after[1] == before[1] {
			t.Errorf("%s: the digests %q become %q", name, before, after)
		}
		before = after
	}
}

// Everything that may change the library changes its place.
func TestBuildAgain(t *testing.T) {
	cc, runs := countingCompiler(t, "gcc")
	other, _ := countingCompiler(t, "gcc")
	place := []string{t.TempDir()}
	seen := map[string]string{}
	check := func(what string, o BuildOptions) {
		t.Helper()
		o.Places = place
		path := build(t, o).Path
		if before, ok := seen[path]; ok {
			t.Errorf("%s: the library of %s", what, before)
		}
		seen[path] = what
	}
	check("a source", BuildOptions{Sources: standIn(""), Compiler: cc})
	check("another source", BuildOptions{Sources: standIn("int x;"), Compiler: cc})
	check("an argument of the compiler", BuildOptions{Sources: standIn(""), Compiler: cc + " -O1"})
	check("another compiler", BuildOptions{Sources: standIn(""), Compiler: other})
	link := filepath.Join(t.TempDir(), "gcc")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	check("another name of a compiler", BuildOptions{Sources: standIn(""), Compiler: link})
	flags := codeFlags
	t.Cleanup(func() { codeFlags = flags })
	codeFlags = append([]string{"-DX"}, flags...)
	check("another flag", BuildOptions{Sources: standIn(""), Compiler: cc})
	codeFlags = flags
	text, err := os.ReadFile(cc)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cc, 0o700, string(text)+"# version 2\n")
	check("the compiler's next version", BuildOptions{Sources: standIn(""), Compiler: cc})
	if runs() != 5 {
		t.Errorf("the first compiler ran %d times", runs())
	}
}

// A library that was cut short, by a full disk or a crash, is made again.
func TestBuildDamaged(t *testing.T) {
	cc, runs := countingCompiler(t, "gcc")
	o := BuildOptions{Sources: standIn(""), Compiler: cc, Places: []string{t.TempDir()}}
	path := build(t, o).Path
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if again := build(t, o); again.Path != path || again.Note != "" || runs() != 2 {
		t.Errorf("%+v, the compiler ran %d times", again, runs())
	}
	if err := checkLibrary(path); err != nil {
		t.Error(err)
	}
}

func TestBuildConcurrently(t *testing.T) {
	cc, runs := countingCompiler(t, "gcc")
	place := filepath.Join(t.TempDir(), "cache")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			built, err := Build(t.Context(), BuildOptions{Sources: standIn(""), Compiler: cc, Places: []string{place}})
			if err == nil {
				err = checkLibrary(built.Path)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if runs() == 0 {
		t.Error("no compiler ran")
	}
	entries, err := filepath.Glob(filepath.Join(place, "*", "*"))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want one file", entries, err)
	}
	hidden, err := filepath.Glob(filepath.Join(place, "*", ".*"))
	if err != nil || len(hidden) != 0 {
		t.Errorf("%v, %v: want nothing left over", hidden, err)
	}
}

// Whoever could have put a library into the cache does not get it loaded: the
// next place is taken, and the reason is said.
func TestPoisonedPlaces(t *testing.T) {
	for _, x := range []struct {
		name   string
		poison func(t *testing.T, dir, library string) error
		says   string
	}{
		{"library for everybody", func(_ *testing.T, _, library string) error { return os.Chmod(library, 0o666) }, "can be written to by others (mode 0666)"},
		{"directory for everybody", func(_ *testing.T, dir, _ string) error { return os.Chmod(dir, 0o777) }, "can be written to by others (mode 0777)"},
		{"sticky directory", func(_ *testing.T, dir, _ string) error { return os.Chmod(dir, 0o777|fs.ModeSticky) }, "can be written to by others (mode 0777)"},
		{"directory for the group", func(_ *testing.T, dir, _ string) error { return os.Chmod(dir, 0o770) }, "can be written to by others (mode 0770)"},
		{"directory above, for everybody", func(_ *testing.T, dir, _ string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "can be written to by others (mode 0777)"},
		{"another user's library", func(t *testing.T, _, library string) error { return giveAway(t, library) }, "belongs to user 65534"},
		{"another user's directory", func(t *testing.T, dir, _ string) error { return giveAway(t, dir) }, "belongs to user 65534"},
		{"another user's directory above", func(t *testing.T, dir, _ string) error { return giveAway(t, filepath.Dir(dir)) }, "belongs to user 65534"},
		{"link to another library", func(t *testing.T, dir, library string) error {
			other := filepath.Join(t.TempDir(), LibraryName)
			return errors.Join(os.Rename(library, other), os.Symlink(other, library))
		}, "is not a regular file"},
	} {
		t.Run(x.name, func(t *testing.T) {
			needCompiler(t, "gcc")
			bad, good := filepath.Join(t.TempDir(), "bad"), filepath.Join(t.TempDir(), "good")
			o := BuildOptions{Sources: standIn(""), Compiler: "gcc", Places: []string{bad, good}}
			path := build(t, o).Path
			if filepath.Dir(filepath.Dir(path)) != bad {
				t.Fatalf("before anything was wrong the library was in %s", path)
			}
			if err := x.poison(t, filepath.Dir(path), path); err != nil {
				t.Fatal(err)
			}
			got := build(t, o)
			if filepath.Dir(filepath.Dir(got.Path)) != good || !strings.Contains(got.Note, x.says) || !strings.Contains(got.Note, bad) {
				t.Errorf("%+v, want %q", got, x.says)
			}
			o.Places = o.Places[:1]
			if _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), x.says) {
				t.Errorf("with no other place: %v", err)
			}
		})
	}
}

func giveAway(t *testing.T, path string) error {
	if os.Geteuid() != 0 {
		t.Skip(&UnsupportedError{"only root can give files away"})
	}
	return os.Chown(path, 65534, -1)
}

// A path that LD_PRELOAD cannot name, or the linker would not load from.
func TestPlacesThatCannotBeUsed(t *testing.T) {
	needCompiler(t, "gcc")
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, 0o600, "")
	for _, x := range []struct{ place, says string }{
		{filepath.Join(t.TempDir(), "John Doe"), "a space, a colon or a dollar sign"},
		{filepath.Join(t.TempDir(), "a:b"), "a space, a colon or a dollar sign"},
		{filepath.Join(t.TempDir(), "$LIB"), "a space, a colon or a dollar sign"},
		{filepath.Join(file, "agent"), "not a directory"},
		// Root may write to every directory, except where the kernel makes them.
		{"/proc/diagnose", "/proc/diagnose"},
	} {
		good := t.TempDir()
		got := build(t, BuildOptions{Sources: standIn(""), Compiler: "gcc", Places: []string{x.place, good}})
		if !strings.HasPrefix(got.Path, good) || !strings.Contains(got.Note, x.says) {
			t.Errorf("%s: %+v, want %q", x.place, got, x.says)
		}
	}
}

func TestNoexec(t *testing.T) {
	needCompiler(t, "gcc")
	bad, good := t.TempDir(), t.TempDir()
	if err := unix.Mount("diagnose", bad, "tmpfs", unix.MS_NOEXEC, "mode=0700"); err != nil {
		t.Skip(&UnsupportedError{"mount: " + err.Error()})
	}
	t.Cleanup(func() { unix.Unmount(bad, unix.MNT_DETACH) })
	got := build(t, BuildOptions{Sources: standIn(""), Compiler: "gcc", Places: []string{bad, good}})
	if !strings.HasPrefix(got.Path, good) || !strings.Contains(got.Note, "noexec") {
		t.Errorf("%+v", got)
	}
}

func TestReadOnlyHome(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip(&UnsupportedError{"root may write everywhere"})
	}
	needCompiler(t, "gcc")
	home, good := t.TempDir(), t.TempDir()
	if err := os.Chmod(home, 0o500); err != nil {
		t.Fatal(err)
	}
	got := build(t, BuildOptions{Sources: standIn(""), Compiler: "gcc", Places: []string{filepath.Join(home, "cache"), good}})
	if !strings.HasPrefix(got.Path, good) || !strings.Contains(got.Note, "permission denied") {
		t.Errorf("%+v", got)
	}
}

func TestDefaultPlaces(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", home)
	places, refused := defaultPlaces()
	if len(places) < 2 || places[0] != filepath.Join(home, ".cache/diagnose/agent") || len(refused) != 0 {
		t.Errorf("%q, %q", places, refused)
	}
	for _, lost := range []string{"", filepath.Join(home, "missing")} {
		t.Setenv("HOME", lost)
		t.Setenv("TMPDIR", t.TempDir())
		places, refused = defaultPlaces()
		if len(places) == 0 || !strings.HasPrefix(places[0], os.TempDir()) || len(refused) != 1 {
			t.Errorf("HOME=%q: %q, %q", lost, places, refused)
		}
		needCompiler(t, "gcc")
		got := build(t, BuildOptions{Sources: standIn(""), Compiler: "gcc"})
		if !strings.HasPrefix(got.Path, os.TempDir()) || !strings.Contains(got.Note, "no directory for caches") {
			t.Errorf("HOME=%q: %+v", lost, got)
		}
	}
}

func TestCompilerErrors(t *testing.T) {
	needCompiler(t, "gcc")
	place := t.TempDir()
	_, err := Build(t.Context(), BuildOptions{Sources: standIn("\nint x = ;"), Compiler: "gcc", Places: []string{place}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"exit status 1", "gcc -std=gnu11 -O2", "agent.c:3:9: error:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(place, "*", ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	_, err = Build(t.Context(), BuildOptions{Sources: fstest.MapFS{}, Compiler: "gcc"})
	if err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("without sources: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(canceled, BuildOptions{Sources: standIn(""), Compiler: "gcc", Places: []string{place}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// What a compiler makes for another machine must not get into the cache.
func TestForeignLibrary(t *testing.T) {
	place := t.TempDir()
	cc := filepath.Join(t.TempDir(), "cc")
	writeFile(t, cc, 0o700, "#!/bin/sh\necho nonsense >libdiagnose.so\n")
	if got, err := Build(t.Context(), BuildOptions{Sources: standIn(""), Compiler: cc, Places: []string{place}}); err == nil {
		t.Errorf("nonsense was taken for the agent: %+v", got)
	}
	needCompiler(t, "gcc")
	sources := fstest.MapFS{"agent.c": {Data: []byte("int x;")}, "agent.map": {Data: []byte("{ global: *; };")}, "glibc.h": {}}
	_, err := Build(t.Context(), BuildOptions{Sources: sources, Compiler: "gcc", Places: []string{place}})
	if err == nil || !strings.Contains(err.Error(), "does not define diagnose_agent_root") {
		t.Errorf("another library: %v", err)
	}
	if kept, _ := filepath.Glob(filepath.Join(place, "*", "*")); len(kept) > 0 {
		t.Errorf("kept: %v", kept)
	}
}

func TestMissingCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	var unsupported *UnsupportedError
	_, err := Build(t.Context(), BuildOptions{Sources: standIn(""), Places: []string{t.TempDir()}})
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "no C compiler") {
		t.Errorf("%v", err)
	}
	t.Setenv("CC", "icc -fast")
	_, err = Build(t.Context(), BuildOptions{Sources: standIn(""), Places: []string{t.TempDir()}})
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "icc, which CC names") {
		t.Errorf("%v", err)
	}
}

// A host without a compiler takes what the release brought, if it is of the
// same sources.
func TestPrebuilt(t *testing.T) {
	needCompiler(t, "gcc")
	sources := standIn("")
	library, err := os.ReadFile(build(t, BuildOptions{Sources: sources, Compiler: "gcc", Places: []string{t.TempDir()}}).Path)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := heapProduct.digest(sources)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	place := t.TempDir()
	o := BuildOptions{Sources: sources, Places: []string{place}, prebuilt: &prebuilt{library, sum}}
	path := build(t, o).Path
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(library) {
		t.Errorf("%s is not the library that was brought: %v", path, err)
	}
	o.Sources = standIn("int changed;")
	var unsupported *UnsupportedError
	if _, err := Build(t.Context(), o); !errors.As(err, &unsupported) {
		t.Errorf("a library of other sources was taken: %v", err)
	}
	o.Sources, o.prebuilt = sources, &prebuilt{library[:len(library)/2], sum}
	if got, err := Build(t.Context(), o); err == nil {
		t.Errorf("half of a library was taken: %+v", got)
	}
}
