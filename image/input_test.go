package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"

	"diagnose/internal/crashtest"
)

var compressors = map[string]func(io.Writer) (io.WriteCloser, error){
	"zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	"lz4": func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil },
	"gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
}

func compressed(t testing.TB, format string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := compressors[format](&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCompressedCore(t *testing.T) {
	crashtest.NeedKernelCores(t)
	core := tinyCore(t)
	data, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for format := range compressors {
		t.Run(format, func(t *testing.T) {
			// The contents decide, not the name.
			file := filepath.Join(filepath.Dir(core), "compressed")
			if err := os.WriteFile(file, compressed(t, format, data), 0o600); err != nil {
				t.Fatal(err)
			}
			p := open(t, file, Options{})
			if v := global(t, p, "marker"); v != 0x5eed || p.Program.Path != file || len(severe(p)) > 0 {
				t.Errorf("marker %#x, %+v, limits %+v", v, p.Program, p.AllLimits())
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("temporary files are left: %v", left)
			}
		})
	}
}

func TestCompressedCoreCut(t *testing.T) {
	core := crashtest.Core(t, threadsProgram(t), crashtest.Run{})
	data, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	for format := range compressors {
		t.Run(format, func(t *testing.T) {
			packed := compressed(t, format, data)
			file := path(t, "core")
			if err := os.WriteFile(file, packed[:len(packed)*3/4], 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := OpenCore(file, Options{})
			if err != nil {
				wantFormatError(t, err, file) // a format that unpacks in blocks larger than this core
				return
			}
			defer p.Close()
			wantLimit(t, p, true, "could be unpacked only up to")
		})
	}
}

func TestCompressedGarbage(t *testing.T) {
	for _, c := range compressions {
		file := path(t, "core")
		if err := os.WriteFile(file, append(bytes.Clone(c.magic), bytes.Repeat([]byte{0xa5, 0x11, 0}, 300)...), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenCore(file, Options{})
		wantFormatError(t, err, file)
	}
	file := path(t, "core")
	if err := os.WriteFile(file, compressed(t, "gz", []byte("no core at all")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenCore(file, Options{})
	wantFormatError(t, err, "no ELF header")
}

// TestXZDictionary: a file of a few bytes must not cause gigabytes to be
// allocated.
func TestXZDictionary(t *testing.T) {
	data := compressed(t, "xz", make([]byte, 100))
	const block = 12 // after the stream's header
	header := data[block : block+4*(int(data[block])+1)]
	at := bytes.Index(header, []byte{0x21, 1}) // the LZMA2 filter and the size of its properties
	if at < 0 {
		t.Fatalf("no filter in % x", header)
	}
	header[at+2] = 40 // 4 GiB - 1
	binary.LittleEndian.PutUint32(header[len(header)-4:], crc32.ChecksumIEEE(header[:len(header)-4]))
	file := path(t, "core.xz")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenCore(file, Options{})
	wantFormatError(t, err, "a dictionary of 4294967295 bytes")
}

func TestStandardInput(t *testing.T) {
	crashtest.NeedKernelCores(t)
	core := tinyCore(t)
	data, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	defer func() { os.Stdin = old }()
	for _, content := range [][]byte{data, compressed(t, "zst", data)} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			w.Write(content)
			w.Close()
		}()
		os.Stdin = r
		p := open(t, "-", Options{})
		if p.Program.Path != "-" || global(t, p, "marker") != 0x5eed {
			t.Errorf("%+v", p.Program)
		}
		r.Close()
	}
	if os.Stdin, err = os.Open(core); err != nil {
		t.Fatal(err)
	}
	defer os.Stdin.Close()
	if p := open(t, "-", Options{}); global(t, p, "marker") != 0x5eed {
		t.Errorf("%+v", p.Program)
	}
}

// TestSparseWriter checks holes and bounds.
func TestSparseWriter(t *testing.T) {
	newWriter := func() *sparseWriter {
		f, err := os.Create(path(t, "out"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return &sparseWriter{file: f, name: "in", mostSize: 100 * pageSize, mostNew: 10 * pageSize, opts: &Options{}}
	}
	header := coreBytes(nil, nil)
	content := append(append(bytes.Clone(header), make([]byte, 50*pageSize)...), []byte("the end")...)
	w := newWriter()
	if err := w.copyFrom(bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(w.file.Name())
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes were written for %d (%v)", len(got), len(content), err)
	}
	if w.written > 2*pageSize {
		t.Errorf("%d bytes take space", w.written)
	}
	for name, tail := range map[string][]byte{
		"room":  bytes.Repeat([]byte{1}, 11*pageSize),
		"holes": make([]byte, 101*pageSize),
	} {
		err := newWriter().copyFrom(bytes.NewReader(append(bytes.Clone(header), tail...)))
		var stop *outputError
		if !errors.As(err, &stop) {
			t.Errorf("%s: %v", name, err)
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("not supported here: ", err)
	}
	defer full.Close()
	w = newWriter()
	w.file = full
	if err := w.copyFrom(bytes.NewReader(content)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full disk: %v", err)
	}
}

func TestCoredumpctl(t *testing.T) {
	core := tinyCore(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if _, err := OpenCoredumpctl(123, Options{}); !errors.Is(err, ErrNoCoredumpctl) {
		t.Errorf("without coredumpctl: %v", err)
	}
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(bin, "coredumpctl"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script(`[ "$*" = "--no-pager dump 123" ] || { echo "called with $*" >&2; exit 2; }
echo "           PID: 123 (tiny)" >&2
exec /bin/cat ` + core)
	p, err := OpenCoredumpctl(123, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Threads) != 1 || !strings.Contains(p.Program.Path, "123") {
		t.Errorf("%+v", p.Program)
	}
	for text, want := range map[string]string{
		"echo No match found. >&2; exit 1":                        "No match found.",
		"echo this is not a core, whatever it is":                 "no ELF header",
		"exec /bin/cat " + core + "; ":                            "",
		"echo PID: 123 >&2; exec /bin/cat /dev/zero":              "no ELF header",
		"/bin/cat " + core + "; echo Failed to write >&2; exit 1": "Failed to write",
	} {
		script(text)
		p, err := OpenCoredumpctl(123, Options{})
		switch {
		case want == "" && err == nil:
			p.Close()
		case want == "" || err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
