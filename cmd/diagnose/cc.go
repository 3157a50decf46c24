package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/driver"
	"diagnose/internal/instrument"
)

// newCompile makes `diagnose cc` or `diagnose c++`.
func newCompile(language instrument.Language) *cobra.Command {
	name, what, variable := language.Command(), "C", "CC"
	if language == instrument.CXX {
		what, variable = "C++", "CXX"
	}
	return &cobra.Command{
		Use:   name + " [--compiler COMMAND] ARGUMENTS...",
		Short: fmt.Sprintf("Compile %s programs whose threads can be preempted anywhere", what),
		Long: fmt.Sprintf(`%[1]s runs the %[2]s compiler so that the program calls a small runtime before each
access to memory and each atomic operation, and at each function's entry. These are
places where a schedule may preempt a thread; without them it can only at
synchronisation and system calls. A data race that needs a preemption between two
plain accesses is found by programs that were built so.

Build a program, and those of its libraries that matter, with it as the compiler:

    ./configure CC="diagnose cc" CXX="diagnose c++"
    cmake -DCMAKE_C_COMPILER="diagnose;cc" -DCMAKE_CXX_COMPILER="diagnose;c++" ..
    make CC="diagnose cc"

The program also runs alone, at about the speed of an unoptimised build: the runtime
is part of it, and then does nothing. It is gcc's and clang's
-fsanitize=thread without their runtime: no races are reported when it runs. Objects
that were compiled so need this command to link them, too.

The arguments, the output and the exit status are the compiler's. -g is added where no
-g option is given. Refused are other sanitizers with a runtime of their own (address,
memory, leak), and -static: a static program cannot be recorded.

Environment:

    DIAGNOSE_%[3]s%[4]s the compiler and its first arguments; --compiler takes precedence
    %[3]s%[5]s the same, if it is not '%[1]s' itself
    XDG_CACHE_HOME  where the runtime is kept, ~/.cache unless it is set

Exit status: the compiler's, or

      1  the tool itself failed
      2  the command line is wrong, or has options that do not go with this
      3  there is no compiler`, "diagnose "+name, what, variable, strings.Repeat(" ", 6-len(variable)), strings.Repeat(" ", 15-len(variable))),
		Example: fmt.Sprintf(`  diagnose %[1]s -O2 -pthread -o server server.%[2]s
  diagnose %[1]s --compiler clang-16 -c worker.%[2]s`, name, strings.ToLower(strings.ReplaceAll(what, "+", "c"))),
		DisableFlagParsing:    true,
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return compile(c, language, args) },
	}
}

func compile(c *cobra.Command, language instrument.Language, args []string) error {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return c.Help()
	}
	o := instrument.Options{Language: language, Runtime: agent.Runtime, RuntimeName: agent.RuntimeName}
	var err error
	if o.Compiler, o.Args, err = compilerFlag(args); err != nil {
		return fmt.Errorf("%w (see '%s --help')", err, c.CommandPath())
	}
	command, err := instrument.Wrap(c.Context(), o)
	if err != nil {
		return compileError(err)
	}
	err = unix.Exec(command.Path, command.Args, os.Environ())
	return &driver.InputError{Err: fmt.Errorf("%s cannot be run: %w", command.Path, err)}
}

// compilerFlag takes our own flag from the front. Everything else is the compiler's.
func compilerFlag(args []string) (compiler string, rest []string, err error) {
	if len(args) == 0 {
		return "", nil, usagef("nothing to compile")
	}
	name, compiler, joined := strings.Cut(args[0], "=")
	if name != "--compiler" {
		return "", args, nil
	}
	rest = args[1:]
	if !joined && len(rest) > 0 {
		compiler, rest = rest[0], rest[1:]
	}
	if len(strings.Fields(compiler)) == 0 {
		return "", nil, usagef("--compiler takes a command")
	}
	return compiler, rest, nil
}

func compileError(err error) error {
	var conflict *instrument.ConflictError
	var none *instrument.CompilerError
	var unsupported *agent.UnsupportedError
	switch {
	case errors.As(err, &conflict):
		return &usageError{err}
	case errors.As(err, &none), errors.As(err, &unsupported):
		return &driver.InputError{Err: err}
	}
	return err
}
