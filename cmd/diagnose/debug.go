package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"diagnose/debug"
	"diagnose/debug/dapserver"
	"diagnose/debug/gdbserver"
	"diagnose/debug/mi"
	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
)

// The values of --at besides moments.
const (
	atBegin = "begin"
	atEnd   = "end"
)

// debugFlags are the flags of debug.
type debugFlags struct {
	gdb, at string
	// At most one is set.
	server, stdio, dap bool
	// warnings are what the user of an editor reads first, lines.
	warnings string
}

func newDebug() *cobra.Command {
	f := &debugFlags{}
	c := &cobra.Command{
		Use:   "debug RECORDING [-- GDB-ARGUMENTS...]",
		Short: "Open a recording in gdb, at the failure, forwards and backwards",
		Long: `debug replays a recording to its end and starts gdb there. gdb then moves through
the recording in both directions: continue, step, next, finish, breakpoints and
watchpoints, and reverse-continue, reverse-step, reverse-next, reverse-finish.
Stores, and calls of the program's functions, are made in a copy of the program, which
lives until it moves; after 'leave' the program continues in it. The recording stays as
it is.

Commands in gdb, besides gdb's own:

    goto MOMENT            go to a moment, which reports name; also begin, end
    who-wrote EXPRESSION   the last store to a variable before here
    discard                give up the changes made here
    leave                  continue from the changes made here, away from the recording,
                           until discard
    monitor when           the moment where the program is stopped
    monitor cause          the cause of the failure, with the moment of each step

--dap serves an editor, which starts it as its debug adapter: docs/debug.md has the
configuration. --server only serves, and prints the name of a socket; --stdio serves on standard
input and output, as in gdb's 'target remote | diagnose debug --stdio RECORDING'.
` + foreignHelp + `
Exit status:

      0  the session ended, and gdb was content
      1  the tool itself or gdb failed, or there is no gdb
      2  the command line is wrong
      3  the recording cannot be used here: it is damaged, or the program changed`,
		Example: `  diagnose debug recordings/server-0001-SIGSEGV
  diagnose debug recordings/server-0001-SIGSEGV -- -batch -ex 'who-wrote queue.head'`,
		Args: func(c *cobra.Command, args []string) error {
			if own := c.ArgsLenAtDash(); own != 1 && (own >= 0 || len(args) != 1) {
				return usagef("debug takes one recording, and gdb's arguments after '--' (see '%s --help')", c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error { return f.debugRecording(c, args[0], args[1:]) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.at, "at", atEnd, "open it at this `moment`, which reports name, or begin, or end")
	flags.StringVar(&f.gdb, "gdb", "gdb", "the gdb to start")
	flags.BoolVar(&f.dap, "dap", false, "serve an editor by the Debug Adapter Protocol on standard input and output")
	flags.BoolVar(&f.server, "server", false, "start no gdb: print the socket to connect to, and wait")
	complete(c, "at", cobra.NoFileCompletions)
	flags.BoolVar(&f.stdio, "stdio", false, "start no gdb: serve on standard input and output")
	return c
}

func (f *debugFlags) debugRecording(c *cobra.Command, dir string, arguments []string) error {
	if f.server && f.stdio || f.server && f.dap || f.stdio && f.dap {
		return usagef("--server, --stdio and --dap exclude each other")
	}
	if (f.server || f.stdio || f.dap) && len(arguments) > 0 {
		return usagef("arguments for gdb, and no gdb is started")
	}
	rec, err := openRecording(c.Context(), dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	if err := unchanged(rec); err != nil {
		return err
	}
	ctx := c.Context()
	if !f.server && !f.stdio && !f.dap {
		// Ctrl-C is for gdb, which interrupts the program.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
		defer stop()
	}
	var moment evidence.Moment
	if f.at != atBegin && f.at != atEnd {
		if moment, err = evidence.ParseMoment(f.at); err != nil {
			return usagef("--at: %w", err)
		}
	}
	session, err := openSession(ctx, c.Context(), rec)
	if err != nil {
		return err
	}
	defer session.Close()
	switch f.at {
	case atEnd:
	case atBegin:
		err = session.Go(session.Begin())
	default:
		err = session.Go(debug.PositionOf(moment))
	}
	if err != nil {
		return err
	}
	limits, err := rec.StateLimits()
	if err != nil {
		return err
	}
	for _, l := range limits {
		say(l.Text)
		f.warnings += l.Text + "\n"
	}
	s := &gdbserver.Server{Session: session, Program: string(rec.Manifest.Program.Path), Causes: causesOf(rec), Note: say}
	if f.stdio {
		return s.Serve(ctx, stdio{})
	}
	return f.serve(ctx, s, arguments)
}

// openSession opens a session. The way to the end shows its progress, and can be interrupted.
func openSession(ctx, opening context.Context, rec *record.Recording) (*debug.Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(opening, cancel)
	defer stop()
	progress := newProgress(os.Stderr)
	defer progress.clear()
	var opened atomic.Bool
	session, err := debug.Open(ctx, rec, replay.Common{Progress: func(done, total uint64) {
		if !opened.Load() {
			progress.say(fmt.Sprintf("replaying, %d of %d events", done, total))
		}
	}})
	opened.Store(true)
	return session, err
}

// stdio is standard input and output as one connection.
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }

// serve serves one debugger on a socket that only this user can reach, and starts gdb unless it is started by hand.
func (f *debugFlags) serve(ctx context.Context, s *gdbserver.Server, arguments []string) error {
	dir, err := os.MkdirTemp("", "diagnose-debug-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("debug: %w", err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- serveOne(ctx, listener, s) }()
	if f.server {
		say(fmt.Sprintf("connect with: gdb -iex 'set sysroot /' -iex 'set remotetimeout 3600' -ex 'target remote %s' %s", path, shellQuote(s.Program)))
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.dap {
		return f.serveEditor(ctx, path, s)
	}
	gdb := exec.CommandContext(ctx, f.gdb, gdbArguments(path, s.Program, arguments)...)
	gdb.Stdin, gdb.Stdout, gdb.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := gdb.Run(); err != nil {
		return fmt.Errorf("debug: %s: %w", f.gdb, err)
	}
	listener.Close()
	if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serveEditor serves an editor, by a gdb that is connected to the socket.
func (f *debugFlags) serveEditor(ctx context.Context, path string, s *gdbserver.Server) error {
	start := func(on func(mi.Record)) (*mi.GDB, error) {
		return mi.Start(f.gdb, gdbArguments(path, s.Program, []string{"-iex", "set mi-async on", "-iex", "set breakpoint pending on"}), on)
	}
	editor := &dapserver.Server{Start: start, Warnings: f.warnings, Ended: endOf(s.Session), Causes: s.Causes,
		Left: func() bool { return s.Session.Left() != nil }}
	return editor.Serve(ctx, os.Stdin, os.Stdout)
}

// endOf says how the program ended, if the session is at the recording's end; empty: it is elsewhere.
func endOf(s *debug.Session) string {
	switch stop := s.Stop(); {
	case stop.Kind != replay.StopEnd:
		return ""
	case stop.Signal != 0:
		return wording.Signal(stop.Signal)
	default:
		return fmt.Sprintf("exit status %d", stop.Status)
	}
}

func serveOne(ctx context.Context, listener net.Listener, s *gdbserver.Server) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	defer connection.Close()
	return s.Serve(ctx, connection)
}

// gdbArguments are those with which gdb opens the program at a socket. gdb executes no commands of the current directory, and
// none that come with the program or its libraries but those of its own directories: the recording may be another's.
func gdbArguments(socket, program string, arguments []string) []string {
	if !filepath.IsAbs(program) {
		program = "./" + program
	}
	own := []string{"-q",
		"-iex", "set auto-load local-gdbinit off",
		"-iex", "set auto-load safe-path $debugdir:$datadir/auto-load",
		"-iex", "set sysroot /",
		"-iex", "set confirm off",
		"-iex", "set remotetimeout 3600", // a replay may be long
		"-iex", "set startup-with-shell off",
		"-iex", pythonOf(gdbCommands)}
	return slices.Concat(own, []string{"-ex", "target remote " + socket}, arguments, []string{program})
}

// pythonOf makes one line of a script for gdb.
func pythonOf(script string) string { return "python exec(" + strconv.Quote(script) + ")" }

// gdbCommands defines goto, who-wrote, discard and leave in gdb's Python.
const gdbCommands = `
import gdb
class Goto(gdb.Command):
    """Go to a moment of the recording: goto MOMENT. Also goto begin, goto end."""
    def __init__(self):
        super().__init__("goto", gdb.COMMAND_RUNNING)
    def invoke(self, argument, from_tty):
        answer = gdb.execute("monitor goto " + argument, to_string=True)
        if "continue" in answer:
            gdb.execute("continue")
        else:
            print(answer)
class WhoWrote(gdb.Command):
    """Tell the last store to a variable before here: who-wrote EXPRESSION."""
    def __init__(self):
        super().__init__("who-wrote", gdb.COMMAND_DATA)
    def invoke(self, argument, from_tty):
        value = gdb.parse_and_eval(argument)
        if value.address is None:
            raise gdb.GdbError(argument + " is not in memory")
        gdb.execute("monitor who-wrote %d %d" % (int(value.address.cast(gdb.lookup_type("unsigned long"))), value.type.sizeof))
class Discard(gdb.Command):
    """Give up the changes and calls since the program stopped."""
    def __init__(self):
        super().__init__("discard", gdb.COMMAND_RUNNING)
    def invoke(self, argument, from_tty):
        gdb.execute("monitor discard", to_string=True)
        gdb.execute("continue")
class Leave(gdb.Command):
    """Leave the recording: the program continues with the changes made here, until discard."""
    def __init__(self):
        super().__init__("leave", gdb.COMMAND_RUNNING)
    def invoke(self, argument, from_tty):
        gdb.execute("monitor leave")
Goto()
WhoWrote()
Discard()
Leave()
`

// causesOf returns what diagnoses a recording.
func causesOf(rec *record.Recording) func(context.Context) ([]debug.Cause, error) {
	return func(ctx context.Context) ([]debug.Cause, error) { return diagnoseRecording(ctx, rec) }
}

var _ io.ReadWriter = stdio{}
