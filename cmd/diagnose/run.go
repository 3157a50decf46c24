package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/driver"
	"diagnose/internal/wording"
	"diagnose/reports"
)

// runFlags are the flags of run. The options stay text: package agent checks them.
type runFlags struct {
	onError, log, quarantine, stacks string
	options                          []string
	exec                             bool
}

func newRun() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a program with the agent, so that its core tells what became of its heap",
		Long: `run starts a program with the agent, a library that guards the program's heap
at little cost. When the program dies, 'diagnose crash' finds in its core which
object was overrun or used after it was freed, and who allocated and freed it.
At a corruption that the agent itself notices, it ends the program with SIGABRT
unless --on-error says otherwise.

run raises the limit for the size of cores as far as is allowed. After a crash
it says where the core is. It passes signals on, and ends as the program
ended: with its exit status, or by the same signal. --exec replaces run by the
program instead, with the same process number, as services and containers need;
then nothing is said after a crash.

The agent cannot be loaded into statically linked programs, nor into those that
gain rights when they are run (set-user-ID): run refuses them. A script's
interpreter counts. The library is built at the first use, see 'diagnose agent'.

The options, which DIAGNOSE_OPTIONS may hold as well (a flag takes precedence):

` + optionsHelp + `
Environment:

    DIAGNOSE_OPTIONS    options of the agent, NAME=VALUE separated by colons
    LD_PRELOAD          other libraries to load; the agent is put before them
    CC                  the compiler that builds the agent, if it is not cc
    XDG_CACHE_HOME      where the agent is kept, ~/.cache unless it is set
` + runtimesHelp + `
Exit status: that of the program, 128 and the number of the signal that ended
it, or

      1  the tool itself failed
      2  the command line is wrong
      3  the program cannot be run, or not with the agent`,
		Example: `  diagnose run -- ./server --port 8080
  diagnose run --on-error log --log /var/log/server.heap -- ./server
  diagnose run --option fill_bytes=1024 --quarantine 64 -- python3 job.py
  diagnose run --exec -- ./server        # as the last line of a service's script`,
		Args:              aProgram,
		ValidArgsFunction: programArgs,
		RunE:              f.runProgram,
	}
	f.register(c)
	return c
}

// runtimesHelp describes the settings for programs in some languages.
const runtimesHelp = `    PYTHONMALLOC        malloc unless it is set, if the program is Python or linked
                        with it: its own allocator would hide its objects
    ` + tracebackVariable + `         ` + tracebackCrash + ` has a Go program leave a core after a panic; otherwise
                        it exits with status 2
`

// optionsHelp describes what --option takes.
const optionsHelp = `    on_error=WORD           abort, log or continue; abort unless it is set. Of single
                            kinds of errors: on_error=abort,mismatch=log
    log_path=FILE           where on_error=log writes, instead of standard error
    quarantine_mb=N         freed memory kept from reuse, in MiB per thread; 1
    fill_bytes=N            how much of a freed object is filled, in bytes; 128
    fresh_byte=N            byte that memory of malloc and new is filled with, so that
                            uses of uninitialised memory show; none unless it is set
    stacks=N                callers kept of every allocation and free; 8
    canary=HEX              secret of which the guards are made, 1 or 8 bytes; random
    check_interval_ms=N     check the whole heap every N ms; 0 is never
    exitcode=N              exit status if something was found, instead of 0
`

func (f *runFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // flags after the program are the program's
	flags.StringVar(&f.onError, "on-error", "", "`what` to do at a corruption: abort (the default), log or continue; of a single kind as in abort,mismatch=log")
	flags.StringVar(&f.log, "log", "", "`file` for what --on-error log writes, instead of standard error")
	flags.StringVar(&f.quarantine, "quarantine", "", "freed memory to keep back, in `MiB` a thread")
	flags.StringVar(&f.stacks, "stacks", "", "`number` of callers to keep of every allocation and free")
	flags.StringArrayVar(&f.options, "option", nil, "`name=value` for the agent; may be repeated")
	flags.BoolVar(&f.exec, "exec", false, "become the program instead of waiting for it")
	complete(c, "on-error", cobra.FixedCompletions(agent.ErrorWords, cobra.ShellCompDirectiveNoFileComp))
	complete(c, "quarantine", cobra.NoFileCompletions)
	complete(c, "stacks", cobra.NoFileCompletions)
	var names []string
	for _, name := range agent.OptionNames() {
		names = append(names, name+"=")
	}
	complete(c, "option", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
}

func (f *runFlags) runProgram(c *cobra.Command, args []string) error {
	settings, err := f.settings(c)
	if err != nil {
		return err
	}
	target, err := agent.FindTarget(args[0])
	if err != nil {
		return &driver.InputError{Err: err}
	}
	library, err := buildAgent(c, agent.BuildOptions{})
	if err != nil {
		return err
	}
	for _, warning := range target.Warnings {
		say("warning: " + warning)
	}
	if err := agent.RaiseCoreLimit(); err != nil {
		say("warning: " + err.Error())
	}
	if err := c.Context().Err(); err != nil {
		return err // interrupted before there was a program to pass it to
	}
	environ := agent.Environment(target.Environ(os.Environ()), library, settings)
	ignored := keepIgnored()
	if f.exec {
		err := unix.Exec(target.Path, args, environ)
		return &driver.InputError{Err: fmt.Errorf("%s cannot be run: %w", target.Path, err)}
	}
	return supervise(&target, args, environ, ignored)
}

// settings returns the options of the environment and of the flags. The flags take precedence.
func (f *runFlags) settings(c *cobra.Command) (agent.Options, error) {
	settings := agent.ParseOptions(os.Getenv(agent.OptionsVariable))
	for _, option := range f.options {
		name, value, found := strings.Cut(option, "=")
		if !found {
			return nil, usagef("--option takes NAME=VALUE, not %q (see '%s --help')", option, c.CommandPath())
		}
		if err := setOption(&settings, name, value); err != nil {
			like := meantInOption(err)
			if !slices.Contains(agent.OptionNames(), name) {
				like = didYouMean(name, agent.OptionNames(), "")
			}
			return nil, usagef("--option: %w%s", err, like)
		}
	}
	for _, x := range []struct{ flag, option, value string }{
		{"on-error", "on_error", f.onError}, {"log", "log_path", f.log},
		{"quarantine", "quarantine_mb", f.quarantine}, {"stacks", "stacks", f.stacks},
	} {
		if !c.Flags().Changed(x.flag) {
			continue
		}
		if err := setOption(&settings, x.option, x.value); err != nil {
			var word *agent.WordError
			if errors.As(err, &word) {
				return nil, usagef("--%s takes %s, not %q%s (see '%s --help')", x.flag, oneOf(word.Takes), word.Word, meantInOption(err), c.CommandPath())
			}
			return nil, usagef("--%s: %w%s", x.flag, errors.Unwrap(err), meantInOption(err))
		}
	}
	return settings, nil
}

// meantInOption suggests a word that is similar to one that an option does not take.
func meantInOption(err error) string {
	var word *agent.WordError
	var kind *agent.KindError
	switch {
	case errors.As(err, &word):
		return didYouMean(word.Word, word.Takes, "")
	case errors.As(err, &kind):
		return didYouMean(kind.Kind, kind.Known, "")
	}
	return ""
}

// setOption makes the path of the log absolute, so that it stays right when the program changes its
// directory. It checks whether the agent will be able to write there: the agent could report it
// only when it is too late.
func setOption(settings *agent.Options, name, value string) error {
	if name == "log_path" && value != "" {
		path, err := filepath.Abs(value)
		if err == nil {
			err = unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK)
		}
		if info, statErr := os.Stat(path); statErr == nil {
			err = unix.Access(path, unix.W_OK)
			if info.IsDir() {
				err = unix.EISDIR
			}
		}
		if err != nil {
			return fmt.Errorf("log_path: %w", &fs.PathError{Op: "write", Path: path, Err: err})
		}
		value = path
	}
	return settings.Set(name, value)
}

// say writes one line to standard error, where the program's own lines are.
func say(text string) {
	fmt.Fprintln(os.Stderr, "diagnose:", reports.Message(text))
}

// explain tells the user of a program that died where its core is.
func explain(d agent.Death, path string) {
	signal := d.Status.Signal()
	if !leavesCore(signal) {
		return
	}
	say(fmt.Sprintf("%s (process %d) died of %s", path, d.PID, wording.Signal(int(signal))))
	switch core := agent.FindCore(d); {
	case core.Dump:
		say(fmt.Sprintf("to see why: diagnose crash --coredumpctl %d", d.PID))
	case core.Path != "":
		say("to see why: diagnose crash --core " + shellQuote(core.Path))
	default:
		say(core.Why)
	}
}

func shellQuote(text string) string { return driver.ShellQuote(text) }
