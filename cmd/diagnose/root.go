package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"diagnose/internal/instrument"
	"diagnose/replay/record"
)

// release is the version that the Makefile links in. A plain go build uses the version that the
// module system knows.
var release string

func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// The lists are indented by four spaces: the man pages do not fill lines of such text.
const (
	exitHelp = `
Exit status:

      0  the analysis succeeded, whatever it found
      1  the tool itself failed
      2  the command line is wrong
      3  the input cannot be used: no core, another architecture, no such process,
         a recording that is damaged or of a newer diagnose; for heap: no agent in it
    130  it was interrupted; a live process continues, and of a recording
         the findings until then are reported`

	environmentHelp = `
Environment:

    DEBUGINFOD_URLS     servers to ask for debug information, separated by
                        spaces; unless it is set no network is used
    DEBUGINFOD_TIMEOUT  seconds to wait for a server
    XDG_CACHE_HOME      where downloads are kept, ~/.cache unless it is set
    NO_COLOR            no colours, if it is set and not empty
`
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "diagnose",
		Short: "Find the root cause of a native crash",
		Long: `diagnose names the root cause of a crash of a C, C++, Rust or Go program on
x86-64 Linux, with the evidence for it and how far each statement is proved.

From a core file, crash reports what the dead process shows. From a recording of the
run it finds the store, or the order of accesses, that caused the failure, and proves
it by experiments on replays.
` + exitHelp,
		Example: `  diagnose crash --core core.123

  diagnose record -- ./server --port 8080
  diagnose crash --recording recordings/server-0001-SIGSEGV`,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true, // man pages that are generated again must not differ
		Args:              knownCommand,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: prepare,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newCrash(), newHeap(), newRun(),
		newRecord(), newReplay(), newDebug(), newHunt(), newMinimize(), newTrace(), newProbe(), newAsk(), newRecording(), newIsolated(),
		newCorpus(), newNightly(), newWorker(), newServe(), newCollect(),
		newCompile(instrument.C), newCompile(instrument.CXX), newAgent(), newMan())
	trimCompletion(root)
	checkTopic(root)
	return root
}

// checkTopic makes cobra's help command refuse an unknown command.
func checkTopic(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	must(err)
	help.Args = func(_ *cobra.Command, args []string) error {
		topic, rest, err := root.Find(args)
		if err != nil || !topic.HasSubCommands() {
			return err
		}
		return knownCommand(topic, rest)
	}
}

// trimCompletion makes cobra's command refuse an unknown shell, and drops PowerShell, as diagnose
// runs only on Linux.
func trimCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args = knownCommand
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		for _, shell := range c.Commands() {
			if shell.Name() == "powershell" {
				c.RemoveCommand(shell)
			}
		}
	}
}

// noStrayFile refuses arguments. Its error helps users who leave out --core or --pid.
func noStrayFile(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("see '%s --help'", c.CommandPath())
	if isRecording(args[0]) && c.Flags().Lookup("recording") != nil {
		hint = fmt.Sprintf("did you mean --recording %s?", args[0])
	} else if _, err := os.Stat(args[0]); err == nil {
		hint = fmt.Sprintf("did you mean --core %s?", args[0])
	} else if pid, err := strconv.Atoi(args[0]); err == nil && pid > 0 {
		hint = fmt.Sprintf("did you mean --pid %d?", pid)
	}
	return usagef("unexpected argument %q (%s)", args[0], hint)
}

func isRecording(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, record.ManifestName))
	return err == nil
}

// aProgram refuses a command line without one.
func aProgram(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("nothing to %s: give a program, as in '%s -- ./server' (see '%s --help')", c.Name(), c.CommandPath(), c.CommandPath())
	}
	return nil
}

// programArgs leaves a program and its arguments to the shell.
func programArgs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// newMan is the hidden command by which the Makefile writes the man pages.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the man pages to a directory",
		Hidden: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("man takes one directory")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: "diagnose " + version()}, args[0])
		},
	}
}
