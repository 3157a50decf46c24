package object

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// separate is a stripped object and its debug file.
type separate struct{ dir, object, debug string }

// stripped builds the test program and splits its debug information off.
// The link is what .gnu_debuglink names.
func stripped(t testing.TB, flags ...string) separate {
	t.Helper()
	whole := build(t, flags...)
	dir := t.TempDir()
	s := separate{dir: dir, object: filepath.Join(dir, "program"), debug: filepath.Join(dir, "program.debug")}
	tool(t, "objcopy", "--only-keep-debug", whole, s.debug)
	tool(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+s.debug, whole, s.object)
	return s
}

// move puts the debug file elsewhere.
func (s separate) move(t testing.TB, to string) {
	t.Helper()
	copyFile(t, s.debug, to)
	os.Remove(s.debug)
}

// found checks that finder finds a debug file of f at a path, and that its
// symbols work.
func found(t *testing.T, finder Finder, object, want string) {
	t.Helper()
	f := open(t, object)
	if _, ok := f.SymbolNamed("hidden_helper"); ok {
		t.Fatal("the stripped object still has the symbol")
	}
	debug, err := finder.Debug(f)
	if err != nil || debug == nil {
		t.Fatalf("no debug file: %v", err)
	}
	defer debug.Close()
	if debug.Path() != want || !debug.HasDWARF() {
		t.Errorf("found %s, with DWARF: %v; want %s", debug.Path(), debug.HasDWARF(), want)
	}
	if debug.Damage() != nil {
		t.Errorf("damage: %v", debug.Damage())
	}
	f.AddSymbols(debug)
	s, ok := f.SymbolNamed("hidden_helper")
	if !ok || f.SymbolSource() != "symtab" {
		t.Fatalf("hidden_helper not found; symbols from %s", f.SymbolSource())
	}
	if at, ok := f.SymbolAt(s.Value + s.Size - 1); !ok || at != s {
		t.Errorf("SymbolAt gives %+v, want %+v", at, s)
	}
	if _, err := debug.ReadAddr(make([]byte, 4), s.Value); err == nil {
		t.Error("a debug file without loaded contents was read at an address")
	}
}

func TestOwnDWARF(t *testing.T) {
	f := open(t, build(t))
	if got, err := new(Finder).Debug(f); got != f || err != nil {
		t.Errorf("Debug gives %v, %v", got, err)
	}
}

func TestDebugLinkPlaces(t *testing.T) {
	for _, id := range []string{"--build-id=sha1", "--build-id=none"} {
		t.Run(id, func(t *testing.T) {
			s := stripped(t, "-Wl,"+id)
			found(t, Finder{}, s.object, s.debug)
			hidden := filepath.Join(s.dir, ".debug", "program.debug")
			s.move(t, hidden)
			found(t, Finder{}, s.object, hidden)
			extra := t.TempDir()
			global := filepath.Join(extra, s.dir, "program.debug")
			separate{debug: hidden}.move(t, global)
			found(t, Finder{DebugDirs: []string{t.TempDir(), extra}}, s.object, global)
			flat := filepath.Join(extra, "program.debug")
			separate{debug: global}.move(t, flat)
			found(t, Finder{DebugDirs: []string{extra}}, s.object, flat)
			if debug, err := new(Finder).Debug(open(t, s.object)); debug != nil || err != nil {
				t.Errorf("without the directory: %v, %v", debug, err)
			}
		})
	}
}

func TestBuildIDDirectory(t *testing.T) {
	s := stripped(t)
	id := open(t, s.object).BuildID()
	dir := t.TempDir()
	path := filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug")
	s.move(t, path)
	found(t, Finder{DebugDirs: []string{dir}}, s.object, path)

	other := stripped(t, "-DOTHER", "-Wl,--build-id=0x1234567890")
	copyFile(t, other.debug, path)
	debug, err := (&Finder{DebugDirs: []string{dir}}).Debug(open(t, s.object))
	if debug != nil || err == nil || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), "1234567890") {
		t.Errorf("a debug file of another build-id: %v, %v", debug, err)
	}
}

func TestDebugLinkChecksum(t *testing.T) {
	s := stripped(t, "-Wl,--build-id=none")
	b, err := os.ReadFile(s.debug)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	writeFile(t, s.debug, b)
	debug, err := new(Finder).Debug(open(t, s.object))
	if debug != nil || err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a changed debug file: %v, %v", debug, err)
	}
}

func TestTruncatedDebugFile(t *testing.T) {
	s := stripped(t)
	if err := os.Truncate(s.debug, 4096); err != nil {
		t.Fatal(err)
	}
	debug, err := new(Finder).Debug(open(t, s.object))
	if debug != nil || err == nil || !strings.Contains(err.Error(), "past the end of the file") {
		t.Errorf("a truncated debug file: %v, %v", debug, err)
	}
}

// TestLinkOfMemory: an object without a path has no directory to search, least
// of all the working directory.
func TestLinkOfMemory(t *testing.T) {
	s := stripped(t, "-Wl,--build-id=none")
	b, err := os.ReadFile(s.object)
	if err != nil {
		t.Fatal(err)
	}
	f, err := FromBytes("memory", b)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(s.dir)
	if debug, err := new(Finder).Debug(f); debug != nil || err != nil {
		t.Errorf("found %v, %v", debug, err)
	}
}

func TestSysroot(t *testing.T) {
	root := t.TempDir()
	s := stripped(t)
	f := open(t, s.object)
	id := f.BuildID()
	inside := filepath.Join(root, "opt", "app", "program")
	copyFile(t, s.object, inside)
	debugPath := "/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug"
	s.move(t, filepath.Join(root, debugPath))
	finder := Finder{Sysroot: root}
	g, err := finder.Open("/opt/app/program")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	debug, err := finder.Debug(g)
	if err != nil || debug == nil {
		t.Fatalf("no debug file in the sysroot: %v", err)
	}
	defer debug.Close()
	if debug.Path() != filepath.Join(root, debugPath) {
		t.Errorf("found %s", debug.Path())
	}
}

func TestSysrootByLink(t *testing.T) {
	root := t.TempDir()
	s := stripped(t)
	copyFile(t, s.object, filepath.Join(root, "opt", "app", "program"))
	want := filepath.Join(root, systemDebugDir, "opt", "app", "program.debug")
	s.move(t, want)
	finder := Finder{Sysroot: root}
	f, err := finder.Open("/opt/app/program")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	debug, err := finder.Debug(f)
	if err != nil || debug == nil || debug.Path() != want {
		t.Fatalf("found %v, %v; want %s", debug, err, want)
	}
	debug.Close()
}

// TestSysrootHolds: neither ".." nor links leave a sysroot.
func TestSysrootHolds(t *testing.T) {
	outer := t.TempDir()
	root := filepath.Join(outer, "root")
	program := build(t)
	copyFile(t, program, filepath.Join(outer, "secret"))
	copyFile(t, program, filepath.Join(root, "bin", "program"))
	for link, target := range map[string]string{
		"absolute": "/bin/program", "inside": "bin/../bin/program",
		"escape": "../secret", "outside": filepath.Join(outer, "secret"),
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	finder := Finder{Sysroot: root}
	for path, ok := range map[string]bool{
		"/bin/program": true, "/absolute": true, "/inside": true, "/../../bin/program": true,
		"/escape": false, "/outside": false, "/../secret": false, "/bin/../../secret": false,
		filepath.Join(outer, "secret"): false, "/fifo": false, "/bin": false, "/": false,
	} {
		f, err := finder.Open(path)
		if (err == nil) != ok {
			t.Errorf("%s: opened %v, error %v", path, f, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

// TestSysrootWithoutOpenat2 uses the code for old kernels.
func TestSysrootWithoutOpenat2(t *testing.T) {
	outer := t.TempDir()
	root := filepath.Join(outer, "root")
	copyFile(t, build(t), filepath.Join(root, "program"))
	copyFile(t, build(t), filepath.Join(outer, "secret"))
	os.Symlink("../secret", filepath.Join(root, "escape"))
	via := func(name string) error {
		data, err := mapFile(name, func(flags int) (int, error) { return openInRoot(root, name, flags) })
		if err == nil {
			err = unix.Munmap(data)
		}
		return err
	}
	if err := via("program"); err != nil {
		t.Error(err)
	}
	if err := via("escape"); err == nil {
		t.Error("a link led out of the sysroot")
	}
}

func TestAlternate(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	copyFile(t, build(t, "-O0"), one)
	copyFile(t, build(t, "-O2"), two)
	shared := filepath.Join(dir, "shared")
	tool(t, "dwz", "-m", shared, "-M", "shared", one, two)
	f := open(t, one)
	alternate, err := new(Finder).Alternate(f)
	if err != nil || alternate == nil {
		t.Fatalf("no alternate file: %v", err)
	}
	defer alternate.Close()
	if alternate.Path() != shared || !alternate.HasDWARF() {
		t.Errorf("found %s, with DWARF: %v", alternate.Path(), alternate.HasDWARF())
	}
	if none, err := new(Finder).Alternate(open(t, build(t))); none != nil || err != nil {
		t.Errorf("without a link: %v, %v", none, err)
	}

	moved := t.TempDir()
	id := alternate.BuildID()
	byID := filepath.Join(moved, ".build-id", id[:2], id[2:]+".debug")
	separate{debug: shared}.move(t, byID)
	if _, err := new(Finder).Alternate(f); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("an absent alternate file: %v", err)
	}
	again, err := (&Finder{DebugDirs: []string{moved}}).Alternate(f)
	if err != nil || again.Path() != byID {
		t.Fatalf("in the build-id directory: %v, %v", again, err)
	}
	again.Close()

	copyFile(t, build(t), shared)
	if wrong, err := new(Finder).Alternate(f); wrong != nil || err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("a file of another build-id: %v, %v", wrong, err)
	}
}

func TestSplit(t *testing.T) {
	path := build(t, "-gsplit-dwarf", "-gdwarf-5")
	dir := filepath.Dir(path)
	found, err := filepath.Glob(filepath.Join(dir, "*.dwo"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the compiler left %v, %v", found, err)
	}
	f, name := open(t, path), filepath.Base(found[0])
	dwo, err := new(Finder).Split(f, dir, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dwo.Section(".debug_info.dwo").Data()
	if err != nil {
		t.Fatal(err)
	}
	id, ok := splitID(b)
	dwo.Close()
	if !ok || id == 0 {
		t.Fatalf("DWO id %#x %v", id, ok)
	}
	if dwo, err = new(Finder).Split(f, "/nonexistent", name, id); err != nil {
		t.Errorf("next to the executable: %v", err)
	} else {
		dwo.Close()
	}
	if _, err := new(Finder).Split(f, dir, name, id+1); err == nil || !strings.Contains(err.Error(), "DWO id") {
		t.Errorf("another DWO id: %v", err)
	}
	if _, err := new(Finder).Split(f, dir, "absent.dwo", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if p, err := new(Finder).Package(f); p != nil || err != nil {
		t.Errorf("no package: %v, %v", p, err)
	}
	copyFile(t, path, path+".dwp")
	if _, err := new(Finder).Package(f); err == nil {
		t.Error("an executable was taken for a package")
	}
}

func TestMiniDebugInfo(t *testing.T) {
	whole := build(t)
	for _, options := range [][]string{{"-6"}, {"--check=crc32"}, {"--check=sha256"}, {"--check=none", "-0"}, {"--block-size=4096"}} {
		dir := t.TempDir()
		mini, object := filepath.Join(dir, "mini"), filepath.Join(dir, "program")
		tool(t, "objcopy", "--strip-debug", "--remove-section=.dynsym", whole, mini)
		tool(t, "xz", append([]string{"-k"}, append(options, mini)...)...)
		tool(t, "objcopy", "--strip-all", "--add-section", ".gnu_debugdata="+mini+".xz", whole, object)
		f := open(t, object)
		if got := f.SymbolSource(); got != "minidebuginfo" {
			t.Errorf("%v: symbols from %s", options, got)
		}
		if _, err := f.symbols.miniDebugInfo(); err != nil {
			t.Fatalf("%v: %v", options, err)
		}
		want, _ := open(t, whole).SymbolNamed("hidden_helper")
		if got, ok := f.SymbolNamed("hidden_helper"); !ok || got != want {
			t.Errorf("%v: hidden_helper is %+v %v, want %+v", options, got, ok, want)
		}
		if got, ok := f.SymbolAt(want.Value + 3); !ok || got != want {
			t.Errorf("%v: SymbolAt is %+v %v, want %+v", options, got, ok, want)
		}
	}
}

func TestXZLies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	data := bytes.Repeat([]byte("some data that compresses well "), 4000)
	writeFile(t, path, data)
	tool(t, "xz", "-k", path)
	whole, err := os.ReadFile(path + ".xz")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unxz(whole); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for at := range whole {
		b := bytes.Clone(whole)
		b[at] ^= 0x41
		if got, err := unxz(b); err == nil && !bytes.Equal(got, data) {
			t.Errorf("byte %d of %d changed: other contents without an error", at, len(b))
		}
		if _, err := unxz(whole[:at]); err == nil {
			t.Errorf("cut at %d of %d without an error", at, len(b))
		}
	}
}
