package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"diagnose/image/debuginfo"
	"diagnose/image/object"
)

// compileTime bounds one run of the compiler.
const compileTime = time.Minute

// CompileError has what the compiler says of the code.
type CompileError struct{ Text string }

func (e *CompileError) Error() string { return "sandbox: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *CompileError) Bare() string { return "the compiler refuses the code:\n" + e.Text }

// UnsupportedError says what this machine cannot do.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string { return "sandbox: " + e.What }

// Compiler is the system's C compiler.
type Compiler struct{ path string }

// FindCompiler finds the system's C compiler.
func FindCompiler() (*Compiler, error) {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil && filepath.IsAbs(path) {
			return &Compiler{path}, nil
		}
	}
	return nil, &UnsupportedError{"there is no C compiler to compile the code with: cc, gcc and clang are not in PATH"}
}

// run runs the compiler in a directory of the tool's, with an environment that says nothing of other directories or programs.
func (c *Compiler) run(ctx context.Context, dir string, args ...string) (output []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "TMPDIR=" + dir}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		var status *exec.ExitError
		if ctx.Err() == nil && errors.As(err, &status) {
			return nil, &CompileError{strings.TrimSpace(stderr.String())}
		}
		return nil, fmt.Errorf("sandbox: %s: %w", c.path, err)
	}
	return stdout.Bytes(), nil
}

var language = []string{"-x", "c", "-std=gnu11", "-D_GNU_SOURCE"}

// Headers preprocesses includes: their text, and lines of #define for all macros that there are then.
func (c *Compiler) Headers(ctx context.Context, includes string) (text, macros string, err error) {
	dir, err := os.MkdirTemp("", "diagnose-code-")
	if err != nil {
		return "", "", fmt.Errorf("sandbox: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "includes.c"), []byte(includes), 0o600); err != nil {
		return "", "", fmt.Errorf("sandbox: %w", err)
	}
	var list [2]string
	for i, how := range []string{"-P", "-dM"} {
		out, err := c.run(ctx, dir, append(append([]string{}, language...), "-E", how, "includes.c")...)
		if err != nil {
			return "", "", err
		}
		list[i] = string(out)
	}
	return list[0], list[1], nil
}

// Binary is compiled code. It is in a directory that only this user can read, until Close.
type Binary struct {
	dir  string
	file *object.File
	info *debuginfo.Info
	// names are the symbols of the slots.
	slots int
}

const (
	programName = "process"
	blocksName  = "blocks.so"
)

// Compile compiles C that defines the functions _dg_block_0 to _dg_block_N-1. slots are the symbols of what the tool gives addresses
// to. The error is a *CompileError if the code is wrong.
func (c *Compiler) Compile(ctx context.Context, text string, blocks int, slots []string) (*Binary, error) {
	if len(slots) > mostSlots {
		return nil, &UnsupportedError{fmt.Sprintf("the code names more than %d variables and functions of the program", mostSlots)}
	}
	dir, err := os.MkdirTemp("", "diagnose-code-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	b := &Binary{dir: dir, slots: len(slots)}
	if err := b.build(ctx, c, text+tables(blocks, slots)); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// tables writes the tables by which the process finds blocks and slots.
func tables(blocks int, slots []string) string {
	var b strings.Builder
	b.WriteString("\n#line 1 \"tables\"\n")
	for i := range slots {
		fmt.Fprintf(&b, "__asm__(\".weak %s\");\n", slots[i])
	}
	b.WriteString("void (*const _dg_blocks[])(void) = {")
	for i := range blocks {
		fmt.Fprintf(&b, "_dg_block_%d, ", i)
	}
	fmt.Fprintf(&b, "};\nconst unsigned _dg_block_count = %d;\nconst char *const _dg_names[] = {", blocks)
	for _, name := range slots {
		fmt.Fprintf(&b, "\"%s\", ", name)
	}
	fmt.Fprintf(&b, "0};\nconst unsigned _dg_name_count = %d;\n", len(slots))
	return b.String()
}

func (b *Binary) build(ctx context.Context, c *Compiler, text string) error {
	for name, data := range map[string][]byte{"blocks.c": []byte(text), "runtime.c": runtimeText, "control.h": controlText} {
		if err := os.WriteFile(filepath.Join(b.dir, name), data, 0o600); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		// Stores and reads are made where the code has them: without optimisation. The addresses of the program's variables are in the
		// global offset table, which the process writes to.
		_, err := c.run(ctx, b.dir, append(append([]string{}, language...), "-O0", "-g", "-Werror=implicit-function-declaration",
			"-Werror=pragmas", "-Wno-incompatible-pointer-types", "-Wno-attributes", "-fPIC", "-fno-plt", "-fno-stack-protector", "-fasynchronous-unwind-tables", "-fno-lto",
			"-shared", "-Wl,-z,norelro", "-Wl,-z,now", "-Wl,-z,defs", "-o", blocksName, "blocks.c", "-lm")...)
		return err
	})
	group.Go(func() error {
		_, err := c.run(ctx, b.dir, append(append([]string{}, language...), "-O1", "-w", "-fPIE", "-pie", "-fno-stack-protector", "-fno-lto",
			"-o", programName, "runtime.c", "-ldl")...)
		var refused *CompileError
		if errors.As(err, &refused) {
			return &UnsupportedError{"the process for the code cannot be compiled: " + refused.Text}
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	file, err := object.Open(filepath.Join(b.dir, blocksName))
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	b.file = file
	if b.info, err = debuginfo.Open(file, nil); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}

// line returns the line of an address of the blocks' object.
func (b *Binary) line(link uint64) (file string, line int) {
	p, found, err := b.info.PositionAt(link)
	if err != nil || !found {
		return "", 0
	}
	// The compiler joins the name of a #line with its directory.
	return strings.TrimPrefix(p.File, b.dir+"/"), p.Line
}

// Close removes the code.
func (b *Binary) Close() error {
	var err error
	if b.info != nil {
		err = b.info.Close()
	}
	if b.file != nil {
		err = errors.Join(err, b.file.Close())
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}
