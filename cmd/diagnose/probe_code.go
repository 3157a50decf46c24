package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/probe"
	"diagnose/probe/blocks"
	"diagnose/probe/sandbox"
	"diagnose/replay/record/eventlog"
	"diagnose/reports"
)

// readCode reads the files of --code.
func (f *probeFlags) readCode() error {
	for _, name := range f.code {
		data, err := readBounded(name, blocks.MostBytes+1)
		if err != nil {
			return usagef("--code: %v", err)
		}
		source, err := blocks.Parse(name, data)
		var wrong *blocks.Error
		if errors.As(err, &wrong) {
			return usagef("%s", wrong.Bare())
		}
		if err != nil {
			return err
		}
		f.Code = append(f.Code, source)
	}
	return nil
}

func readBounded(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// codeFailure says why debug code did not run to its end.
func codeFailure(f *probe.CodeFailure) string {
	text := codeProblem(f)
	if f.Line != 0 {
		text = fmt.Sprintf("%s:%d: %s", f.File, f.Line, text)
	}
	return text
}

func codeProblem(f *probe.CodeFailure) string {
	at := f.Address.String()
	if f.Address == 0 {
		at = "an address that is not known"
	}
	switch f.Kind {
	case sandbox.Read:
		if f.Address < 4096 && f.Address > 0 {
			return "a read at " + at + ", where the program has no memory: a null pointer"
		}
		return "a read at " + at + ", where the program has no memory"
	case sandbox.Store:
		if f.Mapped {
			return "a store to the program's memory at " + at
		}
		return "a store at " + at + ", which is not memory of the code"
	case sandbox.Missing:
		return fmt.Sprintf("%s has no value here: %s", f.Name, f.Why.Why())
	case sandbox.Call:
		return "a call at " + at + ", where neither the code nor the program has code"
	case sandbox.Called:
		name := "the function at " + at
		if f.Name != "" {
			name = f.Name
		}
		return "a call of " + name + ", in a copy of the program, failed: " + f.Text
	case sandbox.SystemCall:
		return fmt.Sprintf("a system call, %s, which code cannot make", eventlog.SyscallName(uint64(f.Number)))
	case sandbox.Signal:
		return "it was ended by " + wording.Signal(f.Number)
	case sandbox.Time:
		return "it did not end in time"
	case sandbox.Exit:
		return fmt.Sprintf("it ended its process with status %d", f.Number)
	case sandbox.Collision:
		return "the program has memory where the process of the code has its own"
	case sandbox.Output:
		return "it printed too much"
	}
	return "it could not be started: " + f.Text
}

// writeCode writes what debug code printed, and its failures, in their order.
func (r *probeReport) writeCode(w io.Writer) error {
	for i := range r.log.Rows {
		row := &r.log.Rows[i]
		if r.log.Places[row.Place].Kind != probe.KindCode {
			continue
		}
		text := row.Printed
		if row.Failure != nil {
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			text += fmt.Sprintf("[%s] %s\n", row.Moment, codeFailure(row.Failure))
		}
		if _, err := io.WriteString(w, cleanLines(text)); err != nil {
			return err
		}
	}
	return nil
}

func (r *probeReport) summarizeCode(out *reports.Listing) {
	for i := range r.log.Code {
		c := &r.log.Code[i]
		text := fmt.Sprintf("%s:%d: ran %s before %s, in a process of its own", c.File, c.Line, wording.Count(c.Runs, "time"), c.At)
		if c.Failed > 0 {
			first, _, _ := strings.Cut(codeFailure(c.First), "\n") // the row has all of it
			text += fmt.Sprintf(", failed %s, first with: %s", wording.Count(c.Failed, "time"), first)
		}
		if c.Left > 0 {
			text += fmt.Sprintf(", was not run %s since the code had ended", wording.Count(c.Left, "time"))
		}
		out.Line("%s", text)
	}
}

// cleanLines removes control characters from text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		parts := strings.Split(lines[i], "\t")
		for k := range parts {
			parts[k] = reports.Clean(parts[k])
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}

// shownCode is a block of debug code.
type shownCode struct {
	// File and Line are where the block was read from; At is FILE:LINE of the program before which it ran.
	File string `json:"file"`
	Line int    `json:"line"`
	At   string `json:"at"`
	// Runs counts how often it ran to its end, Failed how often it did not. Left counts how often it was not run because the code had
	// ended for good. Failure is the first one.
	Runs    uint64            `json:"runs"`
	Failed  uint64            `json:"failed"`
	Left    uint64            `json:"left"`
	Failure *shownCodeFailure `json:"failure,omitempty"`
}

// codeKinds are the kinds of failures of debug code in JSON.
var codeKinds = map[sandbox.FailureKind]string{sandbox.Read: "read", sandbox.Store: "store", sandbox.Missing: "missing", sandbox.Call: "call",
	sandbox.SystemCall: "syscall", sandbox.Signal: "signal", sandbox.Time: "time", sandbox.Load: "load", sandbox.Exit: "exit",
	sandbox.Collision: "collision", sandbox.Output: "output", sandbox.Called: "called"}

// shownCodeFailure is why a block did not run to its end.
type shownCodeFailure struct {
	// Kind is read, store, missing, call, called, syscall, signal, time, load, exit, collision or output. Called is a call of a function of
	// the program that did not return; call is a call where there is no code.
	Kind string `json:"kind"`
	// File and Line are where the code was; Address is what it used, 0 if that is not known.
	File    string        `json:"file,omitempty"`
	Line    int           `json:"line,omitempty"`
	Address evidence.Addr `json:"address"`
	// Name is the variable that has no value, or the function that was called.
	Name string `json:"name,omitempty"`
	// Number is that of the signal or the system call, or the exit status.
	Number int `json:"number,omitempty"`
	// Text says it in words.
	Text string `json:"text"`
}

func shownFailure(f *probe.CodeFailure) *shownCodeFailure {
	if f == nil {
		return nil
	}
	return &shownCodeFailure{Kind: codeKinds[f.Kind], File: f.File, Line: f.Line, Address: f.Address, Name: f.Name, Number: f.Number, Text: codeProblem(f)}
}

func (r *probeReport) shownCode() []shownCode {
	var list []shownCode
	for i := range r.log.Code {
		c := &r.log.Code[i]
		list = append(list, shownCode{File: c.File, Line: c.Line, At: c.At, Runs: c.Runs, Failed: c.Failed, Left: c.Left, Failure: shownFailure(c.First)})
	}
	return list
}
