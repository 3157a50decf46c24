package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// DeclaredRule is the rule by which a run that ended normally failed.
type DeclaredRule string

// The rules.
const (
	// RuleOutput: a line of the program's output matches a regular expression.
	RuleOutput DeclaredRule = "output"
	// RuleFile: a file exists after the run, or differs from the expected one.
	RuleFile DeclaredRule = "file"
	// RuleCheck: a command that was run afterwards ended with a status other than 0.
	RuleCheck DeclaredRule = "check"
	// RulePlace: the user says at which place the run failed. No manifest has it.
	RulePlace DeclaredRule = "place"
)

// Declared says why a run failed whose processes ended normally.
type Declared struct {
	Rule DeclaredRule `json:"rule"`
	// Pattern is the regular expression of RuleOutput, Path the file of RuleFile, Command the
	// command of RuleCheck, Place the place of RulePlace.
	Pattern Text `json:"pattern,omitempty"`
	Path    Text `json:"path,omitempty"`
	Command Text `json:"command,omitempty"`
	Place   Text `json:"place,omitempty"`
	// Line is the line that matched. The event Ordinal of Thread wrote it to Descriptor.
	Line       Text   `json:"line,omitempty"`
	Descriptor int    `json:"descriptor,omitempty"`
	Thread     uint32 `json:"thread,omitempty"`
	Ordinal    uint64 `json:"ordinal,omitempty"`
	// Address is the address of the line in memory, or of the part of it that the last write
	// wrote.
	Address evidence.Addr `json:"address,omitempty"`
	// Expected is the file that Path was compared with; empty: Path should not be there.
	Expected Text `json:"expected,omitempty"`
	// Missing: Path does not exist, and Expected does. Offset is that of the first byte in
	// which the two differ.
	Missing bool  `json:"missing,omitempty"`
	Offset  int64 `json:"offset,omitempty"`
	// Status is the status of the command, or 128 plus the number of the signal that ended it.
	Status int `json:"status,omitempty"`
}

// Words describes it: `wrote "total 1999", which matches 'total 1'`.
func (d *Declared) Words() string {
	switch d.Rule {
	case RuleOutput:
		return fmt.Sprintf("wrote %q, which matches '%s' (--fail-if)", string(d.Line), string(d.Pattern))
	case RuleFile:
		switch {
		case d.Expected == "":
			return fmt.Sprintf("left %s (--fail-if-file)", string(d.Path))
		case d.Missing:
			return fmt.Sprintf("did not leave %s (--fail-if-file)", string(d.Path))
		}
		return fmt.Sprintf("left %s, which differs from %s at byte %d (--fail-if-file)", string(d.Path), string(d.Expected), d.Offset)
	case RulePlace:
		return fmt.Sprintf("came to %s (--failed-at)", string(d.Place))
	}
	return fmt.Sprintf("did not pass the check '%s', which ended with status %d (--check)", string(d.Command), d.Status)
}

// wrong returns the contradiction in it; empty: none.
func (d *Declared) wrong() string {
	ok := false
	switch d.Rule {
	case RuleOutput:
		ok = d.Pattern != "" && d.Thread != 0 && d.Ordinal != 0 && (d.Descriptor == unix.Stdout || d.Descriptor == unix.Stderr)
	case RuleFile:
		ok = d.Path != ""
	case RuleCheck:
		ok = d.Command != "" && d.Status != 0
	}
	if !ok {
		return fmt.Sprintf("is declared a failure by the rule %q, without what that needs", d.Rule)
	}
	return ""
}

// Passed reports whether the process ended normally and there is no sign of a failure.
func (o *Outcome) Passed() bool {
	return o.Kind == OutcomePassed && o.Evidence == "" && o.Declared == nil
}

// mostLine is the maximum length of a line that is matched, in bytes.
const mostLine = 64 << 10

// mostKept is the maximum length of a line that a manifest keeps, in bytes.
const mostKept = 500

// MatchOutput finds the first line of the standard output or standard error of the process that
// a pattern matches; nil if there is none. The log of the recording must hold the output
// (Options.KeepOutput).
func (r *Recording) MatchOutput(pattern *regexp.Regexp) (*Declared, error) {
	lines := map[int][]byte{}                                         // incomplete lines, by descriptor
	ends, begins := map[int]eventlog.Event{}, map[int]evidence.Addr{} // the last writes to them
	match := func(fd int, e *eventlog.Event, at evidence.Addr, line []byte) *Declared {
		if !pattern.Match(line) {
			return nil
		}
		kept := strings.ToValidUTF8(string(line[:min(len(line), mostKept)]), "\uFFFD")
		return &Declared{Rule: RuleOutput, Pattern: Text(pattern.String()), Line: Text(kept), Descriptor: fd, Thread: e.Thread, Ordinal: e.Ordinal, Address: at}
	}
	for e, err := range r.Log.Ordered() {
		if eventlog.Damaged(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		text, at, found := e.Written()
		if !found {
			continue
		}
		fd := int(int32(e.Args[0]))
		for len(text) > 0 {
			part, rest, whole := bytes.Cut(text, []byte("\n"))
			line := append(lines[fd], part...)
			if whole || len(line) > mostLine {
				if d := match(fd, e, at, line); d != nil {
					return d, nil
				}
				line = line[:0]
			}
			ends[fd], begins[fd] = eventlog.Event{Thread: e.Thread, Ordinal: e.Ordinal}, at
			at += evidence.Addr(len(text) - len(rest))
			lines[fd], text = line, rest
		}
	}
	for fd, line := range lines {
		if len(line) > 0 {
			e := ends[fd]
			if d := match(fd, &e, begins[fd], line); d != nil {
				return d, nil
			}
		}
	}
	return nil, nil
}

// MatchFile compares a file that a run left with the expected one; nil if they are equal. If
// expected is empty, the file should not exist, unless it existed before and the run did not
// change it. At most 1 GiB is compared.
func MatchFile(path, expected string, before os.FileInfo) (*Declared, error) {
	d := &Declared{Rule: RuleFile, Path: Text(path), Expected: Text(expected)}
	if expected == "" {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case before != nil && os.SameFile(before, info) && before.ModTime().Equal(info.ModTime()) && before.Size() == info.Size():
			return nil, nil
		}
		return d, nil
	}
	want, err := os.Open(expected)
	if err != nil {
		return nil, err
	}
	defer want.Close()
	got, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		d.Missing = true
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	defer got.Close()
	for _, f := range []*os.File{want, got} {
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(err, fmt.Errorf("%s is no regular file", f.Name()))
		}
	}
	offset, differ, err := firstDifference(want, got)
	if err != nil || !differ {
		return nil, err
	}
	d.Offset = offset
	return d, nil
}

// firstDifference returns the offset at which two files first differ.
func firstDifference(a, b *os.File) (offset int64, differ bool, err error) {
	const most = 1 << 30
	x, y := make([]byte, 1<<16), make([]byte, 1<<16)
	for offset < most {
		n, err := a.ReadAt(x, offset)
		if err != nil && n == 0 && !errors.Is(err, io.EOF) {
			return 0, false, err
		}
		m, err := b.ReadAt(y, offset)
		if err != nil && m == 0 && !errors.Is(err, io.EOF) {
			return 0, false, err
		}
		for i := range min(n, m) {
			if x[i] != y[i] {
				return offset + int64(i), true, nil
			}
		}
		if n != m {
			return offset + int64(min(n, m)), true, nil
		}
		if n == 0 {
			return 0, false, nil
		}
		offset += int64(n)
	}
	return 0, false, fmt.Errorf("%s is larger than %d bytes", a.Name(), int64(most))
}
