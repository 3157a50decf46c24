package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// release is the version that the Makefile links in; a plain go build falls
// back to what the module system knows.
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

const exitHelp = `
Exit status:
  0  the analysis succeeded, whatever it found
  1  the tool itself failed
  2  the command line is wrong
  3  the input cannot be used: not a core, another architecture, no such process
  130  it was interrupted; a live process goes on`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "diagnose",
		Short: "Find the root cause of a native crash",
		Long: `diagnose names the root cause of a crash of a C, C++, Rust or Go program on
x86-64 Linux, with the evidence for it and how far each statement is proved.
` + exitHelp,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w (see '%s --help')", err, c.CommandPath())
	})
	root.AddCommand(newCrash(), newMan())
	return root
}

// knownCommand refuses what is left when no command of that name was found.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		text += ", did you mean " + strings.Join(like, " or ") + "?"
	}
	return usagef("%s (see '%s --help')", text, c.CommandPath())
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q (see '%s --help')", args[0], c.CommandPath())
	}
	return nil
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
