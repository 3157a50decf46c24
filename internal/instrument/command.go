package instrument

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Options says which files are compiled, with which compiler and for which runtime.
type Options struct {
	Language Language
	// Compiler is a command and its first arguments. "" is the value of DIAGNOSE_CC or CC (for C++:
	// DIAGNOSE_CXX, CXX), or else the first compiler that is installed.
	Compiler string
	// Args are the compiler's, as the user gave them.
	Args []string
	// Runtime returns the directory that has the runtime and RuntimeName, its file
	// in there. It is not called where nothing is compiled or linked.
	Runtime     func(context.Context) (string, error)
	RuntimeName string
}

// Command is the command to execute in place of the wrapper.
type Command struct {
	Path string
	Args []string // with the command's own name
}

// ConflictError is an option that cannot be combined with points in the code.
type ConflictError struct{ Option, Why string }

func (e *ConflictError) Error() string { return e.Option + ": " + e.Why }

// Wrap returns the command that compiles and links with points.
func Wrap(ctx context.Context, o Options) (*Command, error) {
	c, err := findCompiler(ctx, o.Language, o.Compiler)
	if err != nil {
		return nil, err
	}
	a, err := parse(append(c.flags(), o.Args...))
	if err != nil {
		return nil, err
	}
	command := &Command{Path: c.path, Args: slices.Clone(c.words)}
	// Questions to the compiler (--version, -print-file-name=...) have no input.
	if a.inputs == 0 {
		command.Args = append(command.Args, o.Args...)
		return command, nil
	}
	if err := a.check(c.family); err != nil {
		return nil, err
	}
	runtime, err := o.Runtime(ctx)
	if err != nil {
		return nil, err
	}
	// First of all, so that a user's own options count more.
	command.Args = append(command.Args, c.options(a, runtime, filepath.Join(runtime, o.RuntimeName))...)
	command.Args = append(command.Args, o.Args...)
	return command, nil
}

// flags are the options that are part of the command.
func (c *compiler) flags() []string {
	var flags []string
	for _, word := range c.words[1:] {
		if len(word) > 1 && word[0] == '-' {
			flags = append(flags, word)
		}
	}
	return flags
}

// check refuses options that would make a program that does not work, or has no points.
func (a *arguments) check(f family) error {
	for _, name := range []string{"address", "hwaddress", "memory", "leak", "dataflow", "kernel-address", "kernel-hwaddress"} {
		if a.sanitizers[name] {
			return &ConflictError{"-fsanitize=" + name, "its runtime does not go with instrumentation for schedules; build without it"}
		}
	}
	// clang has those of the others in thread's.
	if f == clang && a.links() && !a.traps {
		for _, name := range slices.Sorted(maps.Keys(a.sanitizers)) {
			if a.sanitizers[name] && name != "thread" && !strings.HasPrefix(name, "cfi") {
				return &ConflictError{"-fsanitize=" + name, "clang's runtime for it does not go with instrumentation for schedules; add -fsanitize-trap=" + name + ", or use gcc"}
			}
		}
	}
	if a.machine != "" {
		return &ConflictError{a.machine, "programs are recorded on x86-64 only"}
	}
	if a.static != "" && a.links() {
		return &ConflictError{a.static, "a statically linked program cannot be recorded, so points in it are of no use; link it dynamically"}
	}
	return nil
}

// options are the options that precede the user's. The runtime is an object: it is linked wherever
// it is in the command line, and -x does not apply to it there.
func (c *compiler) options(a *arguments, dir, object string) []string {
	options := []string{"-fsanitize=thread"}
	if !a.debug {
		options = append(options, "-g")
	}
	switch c.family {
	case gcc:
		// gcc warns that libtsan does not know fences. The runtime does not need to.
		options = append(options, "-Wno-tsan", "-B"+dir+"/")
		if a.links() && a.noLibraries {
			options = append(options, object)
		}
	case clang:
		if a.links() {
			options = append(options, "-fno-sanitize-link-runtime", object, "-ldl")
		}
	default:
		panic(fmt.Sprintf("compiler family %d", c.family))
	}
	return options
}
