package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// sampleManifest has every field set.
func sampleManifest() *Manifest {
	pc, fault, ended := evidence.Addr(0x555555555139), evidence.Addr(8), time.Unix(1700000001, 5).UTC()
	file := File{Device: 1<<63 + 1, Inode: 1<<60 + 3, Size: 4096, MTimeNS: 1700000000123456789}
	return &Manifest{
		Version: 1, Producer: "v1", PID: 4711,
		Program: Program{
			Path: "/bin/prog", Args: []Text{"prog", "\xff\xfe", ""}, Environ: []Text{"A=\x80", "B=<ä>"}, Directory: "/tmp",
			BuildID: "00ff", File: file, Personality: 0x40000, StackLimit: ^uint64(0), Umask: 0o22,
		},
		Agent:   Agent{"/cache/libdiagnose-record.so", strings.Repeat("ab", 32)},
		Machine: Machine{Kernel: "6.1", CPU: "x", Features: []string{"avx2"}, CPUs: 2},
		Start: Start{
			Random: strings.Repeat("01", 16), TID: 4711, Auxv: []Aux{{25, 0x7ffffffff009}},
			Mappings: []Mapping{
				{Start: 0x1000, End: 0x2000, Offset: 0, Permissions: "r-xp", Path: "/bin/prog", BuildID: "00ff", File: &file},
				{Start: 0x2000, End: 0x4000, Permissions: "rw-p"},
			},
		},
		Parent:    &Parent{PID: 4000, Thread: 1, Ordinal: 17},
		Children:  []Child{{Path: "children/4712-1", PID: 4712, Thread: 2, Ordinal: 9, Exec: true}},
		Outcome:   Outcome{Kind: OutcomeSignal, Signal: 11, Thread: 2, TID: 4713, PC: &pc, FaultAddr: &fault, Evidence: "e", Text: "t"},
		Limits:    []eventlog.Limit{{Kind: "syscall", Text: "bpf", Thread: 1, Ordinal: 4}},
		Times:     Times{Started: time.Unix(1700000000, 0).UTC(), Ended: &ended, UserNS: 1, SystemNS: 2},
		Sizes:     Sizes{1, 2, 3},
		Portable:  []Object{{Path: "/bin/prog", Stored: "objects/00ff", SHA256: "cd"}},
		StartFile: &StoredFile{Size: 8208, SHA256: "ef"}, LinkerCache: &StoredFile{Size: 46523, SHA256: "01"},
	}
}

func TestManifestRoundTrip(t *testing.T) {
	dir, want := t.TempDir(), sampleManifest()
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	info, err := os.Stat(filepath.Join(dir, ManifestName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: a manifest has the environment", info.Mode(), err)
	}
}

// TestManifestVersion: an older diagnose, which refuses fields that it does not know, reads
// a manifest without digests and names the version of one with them.
func TestManifestVersion(t *testing.T) {
	newest := sampleManifest()
	if v := newest.lowestVersion(); v != 4 {
		t.Errorf("version %d with the linker's cache, want 4", v)
	}
	newest.LinkerCache = nil
	if v := newest.lowestVersion(); v != 3 {
		t.Errorf("version %d with a start file, want 3", v)
	}
	for sum, want := range map[string]int{"": 1, strings.Repeat("ef", 32): 2} {
		dir, m := t.TempDir(), sampleManifest()
		m.StartFile, m.LinkerCache = nil, nil
		m.Start.Mappings[0].File.SHA256 = sum
		if err := m.Write(dir); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadManifest(dir); err != nil || got.Version != want || got.Start.Mappings[0].File.SHA256 != sum {
			t.Errorf("digest %q: %+v, %v, want version %d", sum, got, err, want)
		}
	}
}

func TestManifestRefused(t *testing.T) {
	text := encoded(t, sampleManifest())
	for _, c := range []struct{ name, old, new, want string }{
		{"newer", `"version":1`, `"version":9`, "use a newer diagnose"},
		{"version 0", `"version":1`, `"version":0`, "version is 0"},
		{"no version", `"version":1,`, ``, "version is missing"},
		{"unknown field", `"version":1`, `"version":1,"more":1`, `unknown field "more"`},
		{"cut", `"portable"`, "", "manifest.json"},
		{"child outside", "children/4712-1", "children/../../etc", "no directory in children"},
		{"child absolute", "children/4712-1", "/etc", "no directory in children"},
		{"child deep", "children/4712-1", "children/a/b", "no directory in children"},
		{"object outside", "objects/00ff", "../../etc/passwd", "no file in objects"},
		{"outcome", `"kind":"signal"`, `"kind":"exit"`, "exit with status 0"},
		{"signal", `"signal":11`, `"signal":99`, "signal 99"},
		{"mappings", `"start":"0x2000"`, `"start":"0x1800"`, "out of order"},
		{"random", `"0101`, `"01`, "start.random"},
		{"pid", `"pid":4711,"parent"`, `"pid":-1,"parent"`, "pid is -1"},
		{"relative program", `"path":"/bin/prog","args"`, `"path":"prog","args"`, "not absolute"},
		{"nul", `"B=`, `"B\u0000=`, "NUL"},
	} {
		changed := strings.Replace(text, c.old, c.new, 1)
		if changed == text {
			t.Fatalf("%s: %q is not in the manifest", c.name, c.old)
		}
		if _, err := DecodeManifest([]byte(changed)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	var newer *eventlog.VersionError
	if _, err := DecodeManifest([]byte(`{"version":7,"whatever":{}}`)); !errors.As(err, &newer) || newer.Got != 7 {
		t.Errorf("a newer version with unknown fields: %v", err)
	}
	if _, err := DecodeManifest([]byte(text + "{}")); err == nil {
		t.Error("two manifests are read as one")
	}
}

func encoded(t testing.TB, m *Manifest) string {
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A recording comes from a stranger: files outside of it that its names lead to are not read.
func TestOpenInside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"link":      func(p string) error { return os.Symlink(secret, p) },
		"pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if f, err := openInside(dir, name); err == nil {
			f.Close()
			t.Errorf("a %s is opened", name)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "children")); err != nil {
		t.Fatal(err)
	}
	if f, err := openInside(dir, "children/secret"); err == nil {
		f.Close()
		t.Error("a linked directory leads out")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(encoded(f, sampleManifest())))
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		first, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeManifest(first)
		if err != nil {
			t.Fatalf("written and not read: %v", err)
		}
		if second, _ := json.Marshal(again); !bytes.Equal(first, second) {
			t.Errorf("%s\nbecame\n%s", first, second)
		}
	})
}
