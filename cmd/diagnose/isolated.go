package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"diagnose/agent"
	"diagnose/fleet/privateroot"
	"diagnose/replay"
)

// isolatedCommands are the commands that only read a recording and write to their output.
var isolatedCommands = []string{"crash", "replay", "trace", "probe", "ask", "recording", "heap"}

func newIsolated() *cobra.Command {
	c := &cobra.Command{
		Use:   "isolated COMMAND [ARGS]",
		Short: "Run a command on a recording from elsewhere, isolated from this machine",
		Long: `isolated runs crash, replay, trace, probe, ask, heap or recording where the program that was
recorded is not installed, or where it is not trusted. Each argument of the command that is
the directory of a recording is made available to it, read-only.

The command and the replays run in a root directory that has only what the recordings
need: the objects that they bring along ('diagnose record --portable'), or those of
this machine that have the recorded build-ids or sizes and times. They have user, mount,
process and network namespaces of their own, and no rights: no other file, no other
process and no network of this machine. What they print is passed on; they can write
no file. Sources and separate debug information of this machine are not there either.

The kernel must allow users to make namespaces, and this must be a diagnose without
shared libraries, as make and the releases build it. Root cannot use it: a replay needs
a user without rights.

Exit status:

that of the command, or

      1  this diagnose needs shared libraries, or root runs it
      2  the command line is wrong
      3  files of the recordings are missing here
    126  the kernel does not allow such namespaces`,
		Example: `  diagnose isolated crash --recording server-0001-SIGSEGV
  diagnose isolated crash --recording bank-0003-SIGABRT --passing bank-0002-passed --format json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || !slices.Contains(isolatedCommands, args[0]) {
				return usagef("isolated takes one of the commands %s, and its arguments (see '%s --help')", strings.Join(isolatedCommands, ", "), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runIsolated(c.Context(), args) },
	}
	c.Flags().SetInterspersed(false)
	return c
}

// runIsolated runs a command of this program in a private root for the recordings among its
// arguments. An endedError has its end.
func runIsolated(ctx context.Context, args []string) (err error) {
	args, recordings, err := findRecordings(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "diagnose-root-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	objects, err := replayObjects(ctx)
	if err != nil {
		return err
	}
	root, err := privateroot.Build(ctx, filepath.Join(dir, "root"), privateroot.Sources{Recordings: recordings, Objects: objects})
	var missing *privateroot.MissingError
	if errors.As(err, &missing) {
		return &replay.InputError{Err: err}
	}
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "diagnose", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute // crash reports its findings until then
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := root.Wrap(cmd, os.Geteuid(), os.Getegid()); err != nil {
		return err
	}
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return &endedError{ended.Sys().(syscall.WaitStatus)}
	}
	return err
}

// replayObjects returns the objects of this diagnose that replays need. Where they cannot be made,
// recordings must bring theirs along.
func replayObjects(ctx context.Context) ([]string, error) {
	own, err := agent.RecordLibrary(ctx)
	var none *agent.UnsupportedError
	switch {
	case errors.As(err, &none):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []string{own}, nil
}

// findRecordings returns the arguments with the directories of recordings as absolute paths, and
// these.
func findRecordings(args []string) (absolute, recordings []string, err error) {
	for _, a := range args {
		name, value, set := strings.Cut(a, "=")
		if !set || !strings.HasPrefix(a, "-") {
			name, value, set = "", a, false
		}
		if !isRecording(value) {
			absolute = append(absolute, a)
			continue
		}
		if value, err = filepath.Abs(value); err != nil {
			return nil, nil, err
		}
		if value, err = filepath.EvalSymlinks(value); err != nil {
			return nil, nil, err
		}
		recordings = append(recordings, value)
		if set {
			value = name + "=" + value
		}
		absolute = append(absolute, value)
	}
	if len(recordings) == 0 {
		return nil, nil, usagef("none of the arguments is the directory of a recording: %s", strings.Join(args, " "))
	}
	return absolute, recordings, nil
}
