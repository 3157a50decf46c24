package eventlog

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden files again")

func textOf(t testing.TB, l *Log, o TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.WriteText(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// throughText makes a log from a text form.
func throughText(t testing.TB, text string) *Log {
	t.Helper()
	pid, events, err := ReadText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	f := new(memoryFile)
	if err := WriteLog(f, pid, events); err != nil {
		t.Fatal(err)
	}
	return mustReadLog(t, f.b)
}

// TestTextPairs reads archives of a log in text and of the expected results: the same text, a
// short form, one thread, the schedule, or an error.
func TestTextPairs(t *testing.T) {
	files, err := filepath.Glob("testdata/text/*.txtar")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			input := string(archive.Files[0].Data)
			for i := range archive.Files[1:] {
				file := &archive.Files[1+i]
				got := textPair(t, file.Name, input)
				if *update {
					file.Data = []byte(got)
				} else if d := cmp.Diff(string(file.Data), got); d != "" {
					t.Errorf("%s:\n%s", file.Name, d)
				}
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func textPair(t *testing.T, name, input string) string {
	if name == "error" {
		_, events, err := ReadText(strings.NewReader(input))
		if err == nil {
			err = WriteLog(new(memoryFile), 1, events)
		}
		if err == nil {
			_, events, _ := ReadText(strings.NewReader(input))
			f := new(memoryFile)
			WriteLog(f, 1, events)
			_, err = mustReadLog(t, f.b).Schedule()
		}
		if err == nil {
			return "none\n"
		}
		return err.Error() + "\n"
	}
	l := throughText(t, input)
	switch name {
	case "whole":
		return textOf(t, l, TextOptions{})
	case "short":
		return textOf(t, l, TextOptions{Short: 8})
	case "thread 2":
		return textOf(t, l, TextOptions{Thread: 2})
	case "schedule":
		s, err := l.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		return s.String()
	}
	t.Fatalf("nothing is called %q", name)
	return ""
}

func TestTextRoundTrip(t *testing.T) {
	want := sampleEvents()
	l := mustReadLog(t, logBytes(t, want))
	got, err := collect(throughText(t, textOf(t, l, TextOptions{})).Ordered())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(bare(want), bare(got)); d != "" {
		t.Error(d)
	}
}

// FuzzText: the text has everything that a log holds, byte for byte.
func FuzzText(f *testing.F) {
	for _, e := range sampleEvents() {
		b, err := e.Encode(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	mapped := Mapped{Data: NotKept, Length: 1, Path: "/bin/x"}
	e := Event{Kind: KindSyscall, Object: 9, Payloads: []Payload{{1, PayloadFile, mapped.Encode()}, {2, PayloadText, make([]byte, 9000)}}}
	b, err := e.Encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		want, _, err := DecodeEvent(b)
		if err != nil {
			return
		}
		want.Thread = 7
		got, err := ParseEvent(want.String())
		if err != nil {
			t.Fatalf("%v of %s", err, want)
		}
		if d := cmp.Diff(bare([]Event{*want}), bare([]Event{*got})); d != "" {
			t.Errorf("%s\n%s", want, d)
		}
	})
}

// FuzzParseEvent: an event that can be read is written as text that reads as the same event.
func FuzzParseEvent(f *testing.F) {
	for _, e := range sampleEvents() {
		f.Add(e.String())
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := ParseEvent(line)
		if err != nil {
			return
		}
		again, err := ParseEvent(e.String())
		if err != nil {
			t.Fatalf("%v of %s", err, e)
		}
		if d := cmp.Diff(bare([]Event{*e}), bare([]Event{*again})); d != "" {
			t.Errorf("%s\n%s", e, d)
		}
	})
}

func TestTextOfBrokenLog(t *testing.T) {
	b := logBytes(t, sampleEvents())
	var out bytes.Buffer
	l := mustReadLog(t, b)
	events, _ := collect(l.Ordered())
	b[events[5].Offset] = 9
	err := mustReadLog(t, b).WriteText(&out, TextOptions{})
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(out.String(), "\n# \"record: log at") || strings.Count(out.String(), "\n") < 5 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestSyscallNames(t *testing.T) {
	for name, number := range map[string]uint64{
		"read": unix.SYS_READ, "exit_group": unix.SYS_EXIT_GROUP, "rseq": unix.SYS_RSEQ, "io_uring_setup": unix.SYS_IO_URING_SETUP,
		"openat2": unix.SYS_OPENAT2, "futex_waitv": unix.SYS_FUTEX_WAITV, "cachestat": unix.SYS_CACHESTAT, "mseal": unix.SYS_MSEAL,
	} {
		if got, ok := SyscallNumber(name); !ok || got != number || SyscallName(number) != name {
			t.Errorf("%s is %d, want %d, which is %s", name, got, number, SyscallName(number))
		}
	}
	if SyscallName(400) != "400" {
		t.Errorf("400 is %s", SyscallName(400))
	}
}
