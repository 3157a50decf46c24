package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"diagnose/agent"
)

func newAgent() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent",
		Short: "The library that guards a program's heap",
		Long: `The agent is a library that guards a program's heap and keeps evidence in its
memory, where 'diagnose crash' finds it after the program died. 'diagnose run'
loads it; so does LD_PRELOAD, for a service whose start cannot be changed:

    LD_PRELOAD=$(diagnose agent path) DIAGNOSE_OPTIONS=on_error=log ./server

Its sources are part of diagnose. It is built at the first use, by cc or by the
compiler that CC names, and kept under the user's cache directory; a release build brings it
along. A directory that others can write to is not used, and only the user may
read the library there. A service of another user needs a copy:

    install -m 644 "$(diagnose agent path)" /usr/local/lib`,
		Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newAgentPath(), newAgentExport())
	return c
}

func newAgentPath() *cobra.Command {
	return &cobra.Command{
		Use:               "path",
		Short:             "Print the path of the agent's library, and build it if there is none",
		Long:              "path prints the path of the agent's library, for LD_PRELOAD. It builds the\nlibrary if there is none yet.",
		Example:           "  LD_PRELOAD=$(diagnose agent path) ./server",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := buildAgent(c, agent.BuildOptions{})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), path)
			return err
		},
	}
}

// newAgentExport is the hidden command by which the Makefile takes the library
// into a release build.
func newAgentExport() *cobra.Command {
	return &cobra.Command{
		Use:    "export DIRECTORY",
		Short:  "Write the library for a release build",
		Hidden: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("export takes one directory")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return agent.Export(c.Context(), args[0]) },
	}
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unexpected argument %q (see '%s --help')", args[0], c.CommandPath())
}

// buildAgent returns the path of the library, and tells the user if the library is missing.
func buildAgent(c *cobra.Command, options agent.BuildOptions) (string, error) {
	var built agent.Built
	var err error
	newUnexpected(os.Stderr).during("compiling the agent's library, once for this compiler", func() {
		built, err = agent.Build(c.Context(), options)
	})
	if err != nil {
		return "", err
	}
	if built.Note != "" {
		say(built.Note)
	}
	return built.Path, nil
}
