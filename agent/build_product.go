package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// LibraryName and RecordLibraryName are the file names of the agent's
// libraries wherever they are kept.
const (
	LibraryName       = "libdiagnose.so"
	RecordLibraryName = "libdiagnose-record.so"
)

// product is one of the libraries that are made of the sources.
type product struct {
	name string
	// commands are the compiler's arguments, one list a run, in this order.
	commands func() [][]string
	// has says which sources are its own.
	has func(source string) bool
	// copies are sources that are kept in its directory, by the name that they have there.
	copies map[string]string
	// check refuses a file that is not what it should be.
	check func(path string) error
	// beside are the names of the files that are made with it.
	beside []string
}

func (p product) maker(key string, put func(ctx context.Context, dir string) error) maker {
	return maker{name: p.name, key: key, put: put, check: p.check, beside: p.beside}
}

// heapProduct guards the heap, and nothing else: one translation unit.
var heapProduct = product{
	name: LibraryName,
	commands: func() [][]string {
		return [][]string{arguments(codeFlags, oldVersions, linkFlags, []string{
			"-Wl,--version-script=agent.map", "-Wl,-soname," + LibraryName, "agent.c",
		}, systemLibraries, []string{"-o", LibraryName})}
	},
	has:   func(source string) bool { return !ofRecording(source) },
	check: checkLibrary,
}

// recordProduct has the engine in addition, which may use general registers
// only: whoever makes a system call expects the others to stay. Its constructor
// comes before those of all other objects (-z initfirst).
var recordProduct = product{
	name: RecordLibraryName,
	commands: func() [][]string {
		code := arguments(codeFlags, oldVersions, []string{"-DDG_RECORD", "-c"})
		return [][]string{
			arguments(code, []string{"agent.c", "-o", "agent.o"}),
			arguments(code, []string{"-mgeneral-regs-only", "engine.c", "-o", "engine.o"}),
			arguments(code, []string{"engine/entry.S", "-o", "entry.o"}),
			arguments(linkFlags, []string{
				"-Wl,--version-script=record.map", "-Wl,-soname," + RecordLibraryName, "-Wl,-z,initfirst",
				"agent.o", "engine.o", "entry.o",
			}, systemLibraries, []string{"-o", RecordLibraryName}),
		}
	},
	has:   func(string) bool { return true },
	check: checkLibrary,
}

// ofRecording tells the sources that only the recording library has: engine.c, the folders
// engine, hunt and wrap, record.h and record.map.
func ofRecording(source string) bool {
	first, _, _ := strings.Cut(source, "/")
	first = strings.TrimSuffix(first, filepath.Ext(first))
	return slices.Contains([]string{"engine", "hunt", "wrap", "record"}, first)
}

func arguments(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// digest is of the sources and the flags.
func (p product) digest(sources fs.FS) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", p.commands())
	files := 0
	err := p.eachSource(sources, func(name string, text []byte) error {
		files++
		_, err := fmt.Fprintf(h, "%q %d\n%s", name, len(text), text)
		return err
	})
	if err == nil && files == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return "", fmt.Errorf("the agent's sources: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (p product) eachSource(sources fs.FS, do func(name string, text []byte) error) error {
	return fs.WalkDir(sources, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !p.has(name) {
			return err
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		return do(name, text)
	})
}

// compile writes the sources into a directory that no other user may write to,
// and the library next to them, which is linked with further arguments.
func (p product) compile(ctx context.Context, command, linked []string, sources fs.FS, dir string) error {
	err := p.eachSource(sources, func(name string, text []byte) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o600)
	})
	for name, source := range p.copies {
		var text []byte
		if err == nil {
			text, err = fs.ReadFile(sources, source)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
	}
	if err != nil {
		return &placeError{dir, err}
	}
	commands := p.commands()
	last := len(commands) - 1
	commands[last] = arguments(commands[last], linked)
	for _, args := range commands {
		if err := runCompiler(ctx, command, args, dir); err != nil {
			return err
		}
	}
	return nil
}

func runCompiler(ctx context.Context, command, args []string, dir string) error {
	args = arguments(command[1:], args, []string{"-ffile-prefix-map=" + dir + "=/diagnose/agent"})
	cmd := exec.CommandContext(ctx, command[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "PWD="+dir)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// A process that outlives a wrapper may hold its output: a good end is a good end.
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w\n%s %s\n%s", err, command[0], strings.Join(args, " "), firstLines(said.String()))
	}
	return nil
}

// firstLines keeps of a compiler's complaints what helps.
func firstLines(text string) string {
	const most = 40
	lines := strings.SplitAfterN(strings.TrimSpace(text), "\n", most+1)
	if len(lines) > most {
		lines[most] = "..."
	}
	return strings.Join(lines, "")
}
