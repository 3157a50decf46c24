package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/reports"
)

// showFlags are the flags of recording show.
type showFlags struct {
	events bool
	thread uint32
	full   bool
	format string
	redactFlag
}

func newRecordingShow() *cobra.Command {
	f := &showFlags{}
	c := &cobra.Command{
		Use:   "show RECORDING",
		Short: "Show the recorded run, and how it ended",
		Long: `show prints the command, how it ended and a summary of the log: threads, events by
kind, system calls by name, limits, sizes, children.

--events lists the events instead, in the order in which they happened: ticket,
thread, kind, object, arguments, result, call site, and the bytes that were read.
Long ones are shortened, unless --full asks for all. With --format json every
event is an object on a line of its own.

Exit status:

      0  it was shown; a recording that was cut off as far as it goes
      1  the tool itself failed
      2  the command line is wrong
      3  the directory is no recording, or it cannot be read`,
		Example: `  diagnose recording show recordings/server-0001-SIGSEGV
  diagnose recording show --events --thread 2 recordings/server-0001-SIGSEGV`,
		Args:              oneRecording,
		ValidArgsFunction: directories,
		RunE:              func(c *cobra.Command, args []string) error { return f.showRecording(c, args[0]) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.events, "events", false, "list the events")
	flags.Uint32Var(&f.thread, "thread", 0, "list the events of one thread, by its `number`")
	flags.BoolVar(&f.full, "full", false, "list all bytes of the events")
	flags.StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of the output: text, json")
	choices(c, "format", string(reports.Text), string(reports.JSON))
	f.registerLocalRedact(c)
	complete(c, "thread", cobra.NoFileCompletions)
	return c
}

func (f *showFlags) showRecording(c *cobra.Command, dir string) error {
	if (f.thread != 0 || f.full) && !f.events {
		return usagef("--thread and --full go with --events (see '%s --help')", c.CommandPath())
	}
	if err := f.checkRedact(); err != nil {
		return err
	}
	rec, err := openRecording(c.Context(), dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	if f.events {
		return f.showEvents(c.OutOrStdout(), rec)
	}
	shown, err := newShown(rec)
	if err != nil {
		return err
	}
	asJSON := f.format == string(reports.JSON)
	return f.show(c.OutOrStdout(), asJSON, func(w io.Writer) error {
		if asJSON {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(shown)
		}
		return shown.listing().WriteText(w)
	})
}

// shortPayload is how many bytes of a payload --events shows.
const shortPayload = 32

func (f *showFlags) showEvents(w io.Writer, rec *record.Recording) error {
	if f.thread != 0 && !hasThread(rec.Log, f.thread) {
		return usagef("--thread: the recording has no events of thread %d", f.thread)
	}
	var err error
	if f.format == string(reports.JSON) {
		err = f.jsonEvents(w, rec.Log)
	} else {
		o := eventlog.TextOptions{Thread: f.thread, Short: shortPayload}
		if f.full {
			o.Short = 0
		}
		if f.redactor != nil {
			o.Edit = f.redactor.Bytes
		}
		err = f.show(w, false, func(w io.Writer) error { return rec.Log.WriteText(w, o) })
	}
	if eventlog.Damaged(err) {
		say("the events end here: " + f.redacted(err.Error()))
		return nil
	}
	return err
}

func hasThread(l *eventlog.Log, thread uint32) bool {
	for _, index := range l.Threads() {
		if index == thread {
			return true
		}
	}
	return false
}

// shownEvent is the JSON of an event. What may have 64 bits is a string.
type shownEvent struct {
	// Ticket is its place among all events, Ordinal its number among those of its
	// Thread.
	Ticket  uint64 `json:"ticket"`
	Thread  uint32 `json:"thread"`
	Ordinal uint64 `json:"ordinal"`
	// Kind and Object are as agent/src/record.h has them.
	Kind   string        `json:"kind"`
	Object evidence.Addr `json:"object"`
	Name   string        `json:"name,omitempty"` // of a system call
	// Args and Result are the call's.
	Args   []evidence.Addr `json:"args,omitempty"`
	Result string          `json:"result"`
	// Site is where it was called from.
	Site evidence.Addr `json:"site"`
	// Skipped counts the times since that the thread took the lock again.
	Skipped uint64 `json:"skipped,omitempty"`
	// Flags are agent/src/record.h's.
	Flags uint8 `json:"flags,omitempty"`
	// Payloads are the bytes that came in.
	Payloads []shownPayload `json:"payloads,omitempty"`
}

// shownPayload is what an event brought into memory.
type shownPayload struct {
	// Kind says what it is, Addr where it went, Length how many bytes there are.
	Kind   string        `json:"kind"`
	Addr   evidence.Addr `json:"addr"`
	Length int           `json:"length"`
	// Data is all of it, or its beginning, in base64.
	Data []byte `json:"data"`
}

func (f *showFlags) jsonEvents(w io.Writer, l *eventlog.Log) error {
	out := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	events := l.Ordered()
	if f.thread != 0 {
		events = l.Events(f.thread)
	}
	for event, err := range events {
		if err == nil {
			err = e.Encode(f.event(event))
		}
		if err != nil {
			out.Flush()
			return err
		}
	}
	return out.Flush()
}

func (f *showFlags) event(e *eventlog.Event) *shownEvent {
	s := &shownEvent{Ticket: e.Ticket, Thread: e.Thread, Ordinal: e.Ordinal, Kind: e.Kind.String(), Object: evidence.Addr(e.Object),
		Result: strconv.FormatInt(e.Result, 10), Site: e.Site, Skipped: e.Skipped, Flags: uint8(e.Flags)}
	if e.Kind == eventlog.KindSyscall {
		s.Name = eventlog.SyscallName(e.Object)
	}
	for _, v := range e.Args {
		s.Args = append(s.Args, evidence.Addr(v))
	}
	for _, p := range e.Payloads {
		data := p.Data
		if f.redactor != nil {
			data = f.redactor.Bytes(data)
		}
		if !f.full {
			data = data[:min(len(data), shortPayload)]
		}
		s.Payloads = append(s.Payloads, shownPayload{p.Kind.String(), p.Addr, len(p.Data), data})
	}
	return s
}

// shownVersion is the version of shown and shownEvent. reports/schema/recording-1.json and
// event-1.json describe them.
const shownVersion = "1.1"

// shown is what show tells, and the form of its JSON. Fields are added and
// never change their meaning.
type shown struct {
	// Version of this form, MAJOR.MINOR.
	Version string `json:"version"`
	// Recording is its directory.
	Recording string `json:"recording"`
	// Outcome is how the run ended, in words.
	Outcome  string           `json:"outcome"`
	Manifest *record.Manifest `json:"manifest"`
	// Events is their number.
	Events  uint64        `json:"events"`
	Threads []shownThread `json:"threads"`
	// Kinds are the events by kind, Calls the system calls by name.
	Kinds []shownCount `json:"kinds"`
	Calls []shownCount `json:"system_calls"`
	// Limits are the manifest's, and those that only the log has.
	Limits []eventlog.Limit `json:"limits,omitempty"`
	// Cut says where the log ends too early.
	Cut   string      `json:"cut,omitempty"`
	Files []shownFile `json:"files"`
}

// shownThread is a thread of the recording.
type shownThread struct {
	// Thread counts from 1; Parent made it, TID is the kernel's id.
	Thread uint32 `json:"thread"`
	Parent uint32 `json:"parent"`
	TID    uint64 `json:"tid"`
	// Events it has, with so many Bytes; Skipped counts locks that it took again.
	Events  uint64 `json:"events"`
	Bytes   int64  `json:"bytes"`
	Skipped uint64 `json:"skipped"`
	// End says how its events end.
	End string `json:"end"`
}

// shownCount counts events of one kind, or one system call.
type shownCount struct {
	// Name is the kind's, or the call's.
	Name string `json:"name"`
	// Events there are, with so many Bytes; of calls, Errors failed.
	Events uint64 `json:"events"`
	Errors uint64 `json:"errors,omitempty"`
	Bytes  int64  `json:"bytes"`
}

// shownFile is a file of the recording.
type shownFile struct {
	// Name is its name in the directory, Bytes its length.
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	// Disk is its size on disk: a core has holes.
	Disk int64 `json:"disk"`
}

func newShown(rec *record.Recording) (*shown, error) {
	summary, err := rec.Log.Summarize()
	if err != nil {
		return nil, err
	}
	m := rec.Manifest
	s := &shown{Version: shownVersion, Recording: rec.Dir, Outcome: m.Outcome.String(), Manifest: m, Events: summary.Events,
		Threads: []shownThread{}, Kinds: []shownCount{}, Calls: []shownCount{}}
	for _, t := range summary.Threads {
		s.Threads = append(s.Threads, shownThread{t.Index, t.Parent, t.TID, t.Events, t.Bytes, t.Skipped, threadEnd(&t)})
	}
	for _, k := range summary.Kinds {
		s.Kinds = append(s.Kinds, shownCount{Name: k.Kind.String(), Events: k.Events, Bytes: k.Bytes})
	}
	for _, c := range summary.Calls {
		s.Calls = append(s.Calls, shownCount{eventlog.SyscallName(c.Number), c.Events, c.Errors, c.Bytes})
	}
	s.Limits = joinLimits(m.Limits, summary.Limits)
	if err := rec.Log.Cut(); err != nil {
		s.Cut = wording.Bare(err)
	}
	s.Files, err = recordingFiles(rec)
	return s, err
}

func threadEnd(t *eventlog.ThreadSummary) string {
	switch {
	case t.Err != nil:
		return wording.Bare(t.Err)
	case t.Ended:
		return "ended"
	}
	return "with the process"
}

// joinLimits adds the limits that only the log has: the recorder copies them to the manifest only
// if it lives until the end.
func joinLimits(manifest, log []eventlog.Limit) []eventlog.Limit {
	type place struct {
		thread  uint32
		ordinal uint64
	}
	seen := map[place]bool{}
	list := manifest
	for _, l := range manifest {
		seen[place{l.Thread, l.Ordinal}] = l.Thread != 0
	}
	for _, l := range log {
		if !seen[place{l.Thread, l.Ordinal}] {
			list = append(list, l)
		}
	}
	return list
}

// recordingFiles lists the files in the directory, without the manifest.
func recordingFiles(rec *record.Recording) ([]shownFile, error) {
	entries, err := os.ReadDir(rec.Dir)
	if err != nil {
		return nil, err
	}
	list := []shownFile{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || entry.Name() == record.ManifestName {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, shownFile{entry.Name(), info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512})
	}
	return list, nil
}

func (s *shown) listing() *reports.Listing {
	m, out := s.Manifest, &reports.Listing{}
	line := func(name, format string, args ...any) { out.Named(name+":", format, args...) }
	line("recording", "%s", s.Recording)
	line("program", "%s", m.Program.Path)
	line("command", "%s", commandText(m.Program.Args))
	line("directory", "%s", m.Program.Directory)
	line("outcome", "%s", s.Outcome)
	line("started", "%s, process %d%s", m.Times.Started.Local().Format(time.DateTime), m.PID, tookText(&m.Times))
	line("machine", "%s, %d processors, Linux %s", m.Machine.CPU, m.Machine.CPUs, m.Machine.Kernel)
	line("log", "%d events of %d threads", s.Events, len(s.Threads))
	if s.Cut != "" {
		line("cut off", "%s", s.Cut)
	}
	if p := m.Parent; p != nil {
		line("parent", "process %d, %s", p.PID, linkText(p.Thread, p.Ordinal, p.Exec))
	}
	for _, limit := range s.Limits {
		line("limit", "%s: %s", limit.Kind, limit.Text)
	}
	for i := range m.Refused {
		r := &m.Refused[i]
		line("refused", "%s", refusedText(r))
	}
	s.tables(out)
	return out
}

func refusedText(r *record.Refused) string {
	if r.Filter() {
		return fmt.Sprintf("the filter for system calls that %s set at moment %v was not enforced", r.Call, r.Moment())
	}
	return fmt.Sprintf("%s, with %s, first at moment %v: %s", r.Call, r.Error, r.Moment(), r.Why())
}

func (s *shown) tables(out *reports.Listing) {
	number := func(v any) string { return fmt.Sprint(v) }
	var threads, kinds, calls, files, children [][]string
	for _, t := range s.Threads {
		threads = append(threads, []string{number(t.Thread), number(t.TID), number(t.Parent), number(t.Events), number(t.Bytes), number(t.Skipped), t.End})
	}
	for _, k := range s.Kinds {
		kinds = append(kinds, []string{k.Name, number(k.Events), number(k.Bytes)})
	}
	for _, c := range s.Calls {
		calls = append(calls, []string{c.Name, number(c.Events), number(c.Errors), number(c.Bytes)})
	}
	for _, f := range s.Files {
		files = append(files, []string{f.Name, number(f.Bytes), number(f.Disk)})
	}
	for _, c := range s.Manifest.Children {
		children = append(children, []string{c.Path, number(c.PID), linkText(c.Thread, c.Ordinal, c.Exec)})
	}
	text := func(name string) reports.Column { return reports.Column{Name: name} }
	count := func(name string) reports.Column { return reports.Column{Name: name, Number: true} }
	for _, t := range []struct {
		columns []reports.Column
		rows    [][]string
	}{
		{[]reports.Column{count("Thread"), count("Tid"), count("Parent"), count("Events"), count("Bytes"), count("Relocked"), text("End")}, threads},
		{[]reports.Column{text("Kind"), count("Events"), count("Bytes")}, kinds},
		{[]reports.Column{text("System call"), count("Calls"), count("Errors"), count("Bytes")}, calls},
		{[]reports.Column{text("File"), count("Bytes"), count("On disk")}, files},
		{[]reports.Column{text("Child"), count("Process"), text("Made by")}, children},
	} {
		if len(t.rows) > 0 {
			out.Gap()
			out.Table(t.columns, t.rows)
		}
	}
}

func linkText(thread uint32, ordinal uint64, exec bool) string {
	what := "fork"
	if exec {
		what = "exec"
	}
	if thread == 0 {
		return what
	}
	return fmt.Sprintf("%s, event %d of thread %d", what, ordinal, thread)
}

func commandText(args []record.Text) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = shellQuote(string(a))
	}
	return strings.Join(quoted, " ")
}

func tookText(t *record.Times) string {
	if t.Ended == nil {
		return ""
	}
	return fmt.Sprintf(", took %v, %v of processor time", t.Ended.Sub(t.Started).Round(time.Millisecond),
		time.Duration(t.UserNS+t.SystemNS).Round(time.Millisecond))
}
