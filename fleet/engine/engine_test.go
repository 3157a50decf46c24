package engine

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start returns an embedded server with its files in a directory of the test.
func start(t *testing.T, o ServerOptions) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "engine")
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connected(t *testing.T, s *Server, team string) *Engine {
	t.Helper()
	e, err := s.Connect(t.Context(), team)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// noise is incompressible and the same for a seed.
func noise(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	b := make([]byte, n)
	r.Read(b)
	return b
}

func write(t *testing.T, name string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, mode); err != nil {
		t.Fatal(err)
	}
}

// someTree makes a directory with small and large files, one of them with holes.
func someTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty"), nil, 0o600)
	write(t, filepath.Join(dir, "a b\u00e4"), []byte("small"), 0o600)
	write(t, filepath.Join(dir, "bin", "program"), noise(1, 3<<20), 0o700)
	write(t, filepath.Join(dir, "deep", "er", "log"), bytes.Repeat([]byte("line\n"), 1<<18), 0o600)
	f, err := os.Create(filepath.Join(dir, "core"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{1 << 20, 5 << 20, 7<<20 + 4096} {
		if _, err := f.WriteAt(noise(uint64(at), 300<<10), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(40 << 20); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, e *Engine, dir string) (string, Progress) {
	t.Helper()
	var last Progress
	reference, err := e.PutTree(t.Context(), dir, func(p Progress) { last = p })
	if err != nil {
		t.Fatal(err)
	}
	return reference, last
}

// same fails if two directories differ.
func same(t *testing.T, want, got string) {
	t.Helper()
	for _, dirs := range [][2]string{{want, got}, {got, want}} {
		err := filepath.WalkDir(dirs[0], func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rest, err := filepath.Rel(dirs[0], name)
			if err != nil {
				return err
			}
			a, errA := os.ReadFile(name)
			b, errB := os.ReadFile(filepath.Join(dirs[1], rest))
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("%s differs: %v, %v", rest, errA, errB)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTreeThereAndBack(t *testing.T) {
	s := start(t, ServerOptions{})
	e := connected(t, s, "")
	dir := someTree(t)
	reference, p := put(t, e, dir)
	if p.Files != 5 || p.AllFiles != 5 || p.Chunks < 30 || p.NewChunks == 0 || p.Bytes < 4<<20 || p.Bytes > 8<<20 || p.Sent < 3<<20 {
		t.Errorf("progress %+v", p)
	}
	got := filepath.Join(t.TempDir(), "got")
	if err := e.GetTree(t.Context(), reference, got, Limits{}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, got)
	for name, mode := range map[string]os.FileMode{"bin/program": 0o700, "empty": 0o600, "deep": 0o700 | os.ModeDir} {
		if info, err := os.Stat(filepath.Join(got, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
	if info, err := os.Lstat(filepath.Join(got, "core")); err != nil || onDisk(info) > 4<<20 {
		t.Errorf("the core has no holes: %d bytes on the disk, %v", onDisk(info), err)
	}
	if there, err := e.HasTree(t.Context(), reference); err != nil || !there {
		t.Errorf("HasTree: %v, %v", there, err)
	}
	// What is there is not sent again, and neither is what only moved.
	if again, p := put(t, e, dir); again != reference || p.NewChunks != 0 || p.Sent != 0 {
		t.Errorf("again: %s, %+v", again, p)
	}
	shifted := t.TempDir()
	write(t, filepath.Join(shifted, "other"), append([]byte("some bytes before it"), noise(1, 3<<20)...), 0o600)
	if _, p := put(t, e, shifted); p.Sent > 1<<20 || p.NewChunks > 4 {
		t.Errorf("of a shifted file was sent: %+v", p)
	}
	// The server has it after it was started again.
	e.Close()
	s.Close()
	e = connected(t, start(t, ServerOptions{Dir: filepath.Dir(s.lock.Name())}), "")
	if err := e.GetTree(t.Context(), reference, got+"2", Limits{}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, got+"2")
}

func TestTeamsAreApart(t *testing.T) {
	s := start(t, ServerOptions{})
	red, blue := connected(t, s, "red"), connected(t, s, "blue")
	reference, _ := put(t, red, someTree(t))
	if there, err := blue.HasTree(t.Context(), reference); err != nil || there {
		t.Errorf("blue has red's tree: %v, %v", there, err)
	}
	if err := blue.GetTree(t.Context(), reference, filepath.Join(t.TempDir(), "x"), Limits{}); !is[*InputError](err) {
		t.Errorf("blue gets red's tree: %v", err)
	}
}

func TestRefusedTrees(t *testing.T) {
	e := connected(t, start(t, ServerOptions{}), "")
	for name, make := range map[string]func(dir string) error{
		"link":      func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "x")) },
		"directory": func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "x")) },
		"control":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "a\nb"), nil, 0o600) },
		"bytes":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "a\xffb"), nil, 0o600) },
		"huge": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "h"), nil, 0o600), os.Truncate(filepath.Join(dir, "h"), mostBytes+1))
		},
	} {
		dir := t.TempDir()
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		if reference, err := e.PutTree(t.Context(), dir, nil); !is[*InputError](err) {
			t.Errorf("%s: %q, %v", name, reference, err)
		}
	}
	if _, err := e.PutFiles(t.Context(), t.TempDir(), []string{"../x"}, nil); !is[*InputError](err) {
		t.Errorf("a name that leaves the directory: %v", err)
	}
	if _, err := e.PutTree(t.Context(), filepath.Join(t.TempDir(), "none"), nil); !is[*InputError](err) {
		t.Errorf("no directory: %v", err)
	}
}

func TestLimits(t *testing.T) {
	e := connected(t, start(t, ServerOptions{}), "")
	reference, _ := put(t, e, someTree(t))
	for _, l := range []Limits{{Files: 4}, {Bytes: 40 << 20}} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := e.GetTree(t.Context(), reference, dir, l); !is[*InputError](err) {
			t.Errorf("%+v: %v", l, err)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v left a directory: %v", l, err)
		}
	}
	if err := e.GetTree(t.Context(), reference, t.TempDir(), Limits{}); err == nil {
		t.Error("an existing directory was taken")
	}
	if err := e.GetTree(t.Context(), "../x", filepath.Join(t.TempDir(), "x"), Limits{}); !is[*InputError](err) {
		t.Errorf("no reference: %v", err)
	}
}

// A chunk with another content than its name says is refused.
func TestFalseChunk(t *testing.T) {
	e := connected(t, start(t, ServerOptions{}), "")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), noise(9, 1<<20), 0o600)
	reference, _ := put(t, e, dir)
	list, err := e.readTree(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := e.chunkBucket(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	first := list.files[0].chunks[0]
	for name, value := range map[string][]byte{
		"other":  compressor().EncodeAll(noise(10, first.size), nil),
		"longer": compressor().EncodeAll(make([]byte, 1<<26), nil),
		"none":   []byte("no frame"),
		"empty":  nil,
	} {
		if _, err := chunks.Put(t.Context(), first.sum.String(), value); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "x")
		if err := e.GetTree(t.Context(), reference, to, Limits{}); !is[*InputError](err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s left a directory: %v", name, err)
		}
	}
}

func TestOptions(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, nil, 0o600)
	for name, o := range map[string]Options{
		"scheme":     {URL: "http://localhost:1"},
		"none":       {},
		"host":       {URL: "nats://"},
		"team":       {URL: "nats://localhost:1", Team: "a_b"},
		"wildcard":   {URL: "nats://localhost:1", Team: ">"},
		"key":        {URL: "nats://localhost:1", Cert: empty},
		"credential": {URL: "nats://localhost:1", Credentials: empty},
		"missing":    {URL: "nats://localhost:1", CA: empty + "x"},
		"directory":  {URL: "nats://localhost:1", CA: filepath.Dir(empty)},
	} {
		if _, err := Connect(t.Context(), o); !is[*InputError](err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Connect(t.Context(), Options{URL: "nats://user:secret@127.0.0.1:1"})
	if !is[*UnreachableError](err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("no server: %v", err)
	}
	if _, err := Connect(t.Context(), Options{URL: "nats://user:secret@[::1"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a bad URL: %v", err)
	}
}

func TestServerDirectory(t *testing.T) {
	s := start(t, ServerOptions{})
	dir := filepath.Dir(s.lock.Name())
	if _, err := StartEmbedded(t.Context(), dir); !errors.Is(err, ErrBusy) {
		t.Errorf("a second server: %v", err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := StartEmbedded(t.Context(), open); !is[*InputError](err) {
		t.Errorf("a directory of all: %v", err)
	}
	if s.URL() != "" {
		t.Errorf("it listens on %s", s.URL())
	}
}

func TestListening(t *testing.T) {
	s := start(t, ServerOptions{Listen: "127.0.0.1:0"})
	e, err := Connect(t.Context(), Options{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	connected(t, s, "")
	if strings.Contains(e.URL(), s.token) || !strings.Contains(s.URL(), s.token) {
		t.Errorf("%s, %s", e.URL(), s.URL())
	}
	_, err = Connect(t.Context(), Options{URL: e.URL()})
	if !is[*DeniedError](err) {
		t.Errorf("without the token: %v", err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections to it are made, and say nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, Options{URL: "nats://" + silent.Addr().String()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a host that does not answer: %v", err)
	}
}
