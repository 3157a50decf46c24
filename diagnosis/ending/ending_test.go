package ending_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/ending"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// A program that writes in several ways, and whose calls fail in others.
const program = `
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
__attribute__((noinline)) static void complain(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
}
__attribute__((noinline)) static int connected(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(s, (struct sockaddr *)&a, sizeof a) == 0)
		return s;
	struct iovec parts[2] = { { "no ", 3 }, { "server\n", 7 } };
	if (writev(2, parts, 2) < 0)
		abort();
	return -1;
}
__attribute__((noinline)) static int spool(const char *dir)
{
	char path[100];
	snprintf(path, sizeof path, "%s/queue", dir);
	int f = open(path, O_RDWR);
	if (f < 0)
		complain("cannot open %s: %s\n", path, strerror(errno));
	return f;
}
int main(int argc, char **argv)
{
	printf("starting %d\n", argc);
	for (volatile int i = 0; i < 3; i++)
		complain("check %d\n", i);
	if (argc < 2 || connected(atoi(argv[1])) < 0 | spool("/nonexistent/dir") < 0)
		return 4;
	return 0;
}
`

func TestOf(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"CC=clang", "-O1"}} {
		compiler := "cc"
		if rest, found := strings.CutPrefix(flags[0], "CC="); found {
			compiler, flags = rest, flags[1:]
			if _, err := exec.LookPath(compiler); err != nil {
				continue
			}
		}
		dir := t.TempDir()
		source, exe := filepath.Join(dir, "ends.c"), filepath.Join(dir, "ends")
		if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(compiler, append(flags, "-g", "-o", exe, source)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		e := endingOf(t, exe, "1", "exit 4")
		check(t, e)
	}
}

func endingOf(t *testing.T, exe, argument, ends string) *evidence.Ending {
	t.Helper()
	rec, err := record.Open(recordtest.RecordProgram(t, exe, []string{argument}, "", ends).Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	e, err := ending.Of(t.Context(), rec, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func check(t *testing.T, e *evidence.Ending) {
	t.Helper()
	messages := []struct {
		stream         evidence.Stream
		text, function string
	}{
		{evidence.StandardError, "check 0\ncheck 1\ncheck 2\n", "complain"},
		{evidence.StandardError, "no server\n", "connected"},
		{evidence.StandardError, "cannot open /nonexistent/dir/queue: No such file or directory\n", "complain"},
		{evidence.StandardOutput, "starting 2\n", ""}, // at the exit
	}
	if len(e.Messages) != len(messages) {
		t.Fatalf("%d messages", len(e.Messages))
	}
	for i, want := range messages {
		m := &e.Messages[i]
		function := ""
		if m.Site != nil {
			function = m.Site.Function
		}
		if m.Stream != want.stream || m.Text != want.text || function != want.function || len(m.Stack.Frames) == 0 {
			t.Errorf("%s %q by %s, want %+v", m.Stream, m.Text, function, want)
		}
	}
	calls := []struct {
		call, function string
		name           evidence.ErrorName
	}{
		{"connect(3, 127.0.0.1:1)", "connected", "ECONNREFUSED"},
		{`openat(AT_FDCWD, "/nonexistent/dir/queue", 2, 0)`, "spool", "ENOENT"},
	}
	if len(e.Calls) != len(calls) {
		t.Fatalf("%d failed calls", len(e.Calls))
	}
	for i, want := range calls {
		c := &e.Calls[i]
		if c.Call != want.call || c.Error != want.name || c.Times != 1 || c.Site == nil || c.Site.Function != want.function {
			t.Errorf("%s: %s at %+v, want %+v", c.Call, c.Error, c.Site, want)
		}
	}
}

// The stack of a panic is that of the code that panicked.
func TestRustPanic(t *testing.T) {
	rustc, err := exec.LookPath("rustc")
	if err != nil {
		t.Skip(err)
	}
	const text = `
struct Table { rows: Vec<u32> }
impl Table {
    #[inline(never)]
    fn row(&self, n: usize) -> u32 { self.rows[n] }
}
fn main() {
    let t = Table { rows: std::env::args().map(|a| a.len() as u32).collect() };
    println!("{}", t.row(7));
}
`
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "table.rs"), filepath.Join(dir, "table")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(rustc, "-g", "-O", "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e := endingOf(t, exe, "x", "exit 101")
	p := e.Panic
	if p == nil || p.Language != evidence.Rust || !strings.Contains(p.Text, "index out of bounds") || p.Line != 5 || filepath.Base(p.File) != "table.rs" {
		t.Fatalf("%+v", p)
	}
	if s := e.Messages[p.Message].Site; s == nil || !strings.HasSuffix(s.Function, "Table::row") || s.Line != 5 {
		t.Errorf("the panic is at %+v", s)
	}
}

// A program that wrote nothing and had no failed call has no ending to report.
func TestNothing(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "quiet.c", Text: "int main(void) { return 3; }\n"})
	if e := endingOf(t, exe, "", "exit 3"); len(e.Messages) != 0 || len(e.Calls) != 0 || e.Panic != nil {
		t.Errorf("%+v", e)
	}
}

// A failed call has the paths that it was given, whatever the call and its error are.
func TestPaths(t *testing.T) {
	const text = `
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char *arguments[] = { "helper", 0 }, *none[] = { 0 }, target[10], path[40];
	execve("/nonexistent/helper", arguments, none);
	strcpy(path, "/nonexistent/second");
	syscall(SYS_execveat, AT_FDCWD, path, arguments, none, 0);
	if (readlink("/", target, sizeof target) < 0)
		return 3;
	return 0;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "paths.c", Text: text})
	e := endingOf(t, exe, "", "exit 3")
	want := []string{`execve("/nonexistent/helper", `, `execveat(AT_FDCWD, "/nonexistent/second", `, `readlink("/", `}
	if len(e.Calls) != len(want) {
		t.Fatalf("%d failed calls", len(e.Calls))
	}
	for i, begins := range want {
		if got := e.Calls[i].Call; !strings.HasPrefix(got, begins) {
			t.Errorf("%s, want %s...", got, begins)
		}
	}
}

// Of a file that differs from the expected one the writes are found: by descriptors that share a
// position, at an offset, and under the name that the file had before.
func TestDeclaredFile(t *testing.T) {
	const text = `
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static long total(int f)
{
	return write(f, "total 7\n", 8);
}
int main(int argc, char **argv)
{
	if (chdir(argv[1]) < 0)
		return 4;
	int other = open("other", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int f = open("out.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
	write(f, "....\n", 5);
	int g = dup(f);
	total(g);
	total(other);
	write(f, "end\n", 4);
	lseek(f, 0, SEEK_SET);
	write(g, "a", 1);
	pwrite(f, "bcd", 3, 1);
	close(f);
	close(g);
	rename("out.tmp", "out.txt");
	return 3;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "files.c", Text: text})
	dir := t.TempDir()
	rec, err := record.Open(recordtest.RecordProgram(t, exe, []string{dir}, "", "exit 3").Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for _, x := range []struct {
		offset   int64
		expected record.Text
		text     string // of the write that gave the byte
		function string
	}{{11, "expected", "total 7\n", "total"}, {0, "expected", "a", "main"}, {3, "expected", "bcd", "main"}, {17, "expected", "", ""}, {0, "", "", ""}} {
		rec.Manifest.Outcome.Declared = &record.Declared{Rule: record.RuleFile, Path: record.Text(filepath.Join(dir, "out.txt")), Expected: x.expected, Offset: x.offset}
		e, err := ending.Of(t.Context(), rec, image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		written, got, function := "", "", ""
		for _, m := range e.Messages {
			if m.Stream != evidence.DeclaredFile || filepath.Base(m.File) != "out.txt" {
				t.Errorf("%+v", m)
			}
			written += m.Text
			if m.Differs && m.Site != nil {
				got, function = m.Text, m.Site.Function
			}
		}
		if written != "....\ntotal 7\nend\nabcd" || got != x.text || function != x.function {
			t.Errorf("byte %d: %q, of these %q by %q, want %q", x.offset, written, got, function, x.text)
		}
	}
}
