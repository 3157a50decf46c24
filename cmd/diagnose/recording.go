package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	"github.com/spf13/cobra"

	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/integrity"
	"diagnose/reports"
)

func newRecording() *cobra.Command {
	c := &cobra.Command{
		Use:   "recording",
		Short: "Show and check recordings",
		Long: `A recording is a directory that 'diagnose record' made: the command and how it
ended, the log of its events, the data of mapped files, and the core of its end.`,
		Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRecordingShow(), newRecordingCheck())
	return c
}

func oneRecording(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes one recording, not %d (see '%s --help')", c.Name(), len(args), c.CommandPath())
	}
	return nil
}

func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func newRecordingCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check RECORDING",
		Short: "Read all of a recording and report damage",
		Long: `check reads all of a recording and of the recordings of its children: the
manifest, every event of the log in the order of all threads, what the events
refer to, the table of system calls, the core, and the objects that a portable
recording brings along.

A recording that was cut off, by a crash, a kill or a full disk, can be shown
and replayed up to where it ends; check says where that is.

It warns of variables of the recorded environment that load code or write files
(LD_AUDIT, LD_DEBUG_OUTPUT and others) where the recorded process loaded nothing
by them, as in a recording that was tampered with. A replay does not obey them.

Exit status:

      0  the recording is whole
      1  it is damaged or cut off, or the tool itself failed
      2  the command line is wrong
      3  there is no such directory, it is no recording, or a newer diagnose made it
    130  it was interrupted`,
		Example:           "  diagnose recording check recordings/server-0001-SIGSEGV",
		Args:              oneRecording,
		ValidArgsFunction: directories,
		RunE: func(c *cobra.Command, args []string) error {
			checked, err := integrity.Check(c.Context(), args[0])
			if err != nil && c.Context().Err() == nil {
				return &replay.InputError{Err: err}
			}
			if err != nil {
				return err
			}
			return writeChecked(c.OutOrStdout(), args[0], checked)
		},
	}
}

// writeChecked prints the verdict. The error determines the exit status.
func writeChecked(w io.Writer, dir string, c *integrity.Checked) error {
	var b bytes.Buffer
	damaged := 0
	for _, p := range c.Problems {
		what := "cut off"
		if !p.Cut {
			what = "damaged"
			damaged++
		}
		where := p.Dir
		if p.File != "" {
			where += "/" + p.File
		}
		text := strings.TrimPrefix(p.Err.Error(), "record: ")
		fmt.Fprintf(&b, "%s: %s: %s\n", what, reports.Clean(where), reports.Clean(text))
	}
	if c.More > 0 {
		fmt.Fprintf(&b, "and %d problems more\n", c.More)
	}
	for _, r := range c.Risks {
		fmt.Fprintf(&b, "warning: %s\n", reports.Clean(riskText(&r)))
	}
	children := ""
	if c.Recordings > 1 {
		children = fmt.Sprintf(" in %d recordings", c.Recordings)
	}
	verdict := "whole"
	switch {
	case damaged > 0:
		verdict = "damaged"
	case len(c.Problems) > 0:
		verdict = "cut off"
	}
	fmt.Fprintf(&b, "%s: %s, %d events%s\n", reports.Clean(dir), verdict, c.Events, children)
	if _, err := b.WriteTo(w); err != nil {
		return err
	}
	if len(c.Problems) > 0 {
		return errors.New("the recording is " + verdict)
	}
	return nil
}

// foreignHelp explains what replaying a recording means. Every command that replays has it.
const foreignHelp = `
A replay runs the recorded program, natively. What loads it may only read files and
load what the recorded process had loaded, whatever the recorded environment says;
after that its system calls are answered from the recording. That is no sandbox: a
recording made by hand can make the program compute anything. Replay a recording from
elsewhere only if you would run its sender's programs; otherwise use a container or a
virtual machine. See docs/recording.md.
`

// mostPaths bounds the paths that a warning names.
const mostPaths = 3

func riskText(r *integrity.Risk) string {
	paths := record.Strings(r.Paths[:min(len(r.Paths), mostPaths)])
	more := ""
	if n := len(r.Paths) - len(paths); n > 0 {
		more = fmt.Sprintf(" and %d others", n)
	}
	text := fmt.Sprintf("%s/%s: the environment has %s (%s%s), which %s", r.Dir, record.ManifestName, r.Variable, strings.Join(paths, ", "), more, r.Effect)
	if r.Effect == record.LoadsCode {
		text += "; the recorded process had loaded nothing from there when it started"
	}
	return text
}

// table prints rows under a header, numbers to the right. Cells are cleaned.
func table(w *bytes.Buffer, header []string, rows [][]string) error {
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = reports.Clean(rows[i][j])
		}
	}
	aligned := make([]tw.Align, len(header))
	for j := range aligned {
		aligned[j] = tw.AlignRight
		for i := range rows {
			if _, err := strconv.ParseUint(strings.TrimSuffix(rows[i][j], "%"), 10, 64); err != nil {
				aligned[j] = tw.AlignLeft
			}
		}
	}
	var b bytes.Buffer
	t := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: aligned}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: aligned}),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
	)
	t.Header(header)
	if err := t.Bulk(rows); err != nil {
		return err
	}
	if err := t.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		w.WriteString(" " + strings.TrimRight(line, " \n") + "\n")
	}
	return nil
}
