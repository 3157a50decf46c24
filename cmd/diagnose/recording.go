package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"diagnose/internal/wording"
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
	out, damaged := &reports.Listing{}, 0
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
		out.Line("%s: %s: %s", what, where, wording.Bare(p.Err))
	}
	if c.More > 0 {
		out.Line("and %d problems more", c.More)
	}
	for _, r := range c.Risks {
		out.Line("warning: %s", riskText(&r))
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
	out.Line("%s: %s, %d events%s", dir, verdict, c.Events, children)
	if err := out.WriteText(w); err != nil {
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
elsewhere only if you would run its sender's programs; otherwise use 'diagnose isolated' or a
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
