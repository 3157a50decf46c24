package tree

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"diagnose/bench/truth/source"
)

// Tree is a copy of a package's sources in which one variant is built.
type Tree struct {
	*source.Unpacked
	Variant Variant
	// Top is the top of the copy.
	Top string
	// driver is the text of the main function of ours; empty: the program has its own.
	driver []byte
	// changed is the file that differs from the original; empty: none.
	changed string
}

// BuildError says that a package or a mutant does not compile.
type BuildError struct {
	Tree, Output string
	Err          error
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("tree: %s: %v: %s", e.Tree, e.Err, e.Output)
}

func (e *BuildError) Unwrap() error { return e.Err }

// limits of a build of all and of one file.
const (
	wholeLimit = 20 * time.Minute
	fileLimit  = 3 * time.Minute
)

// Open returns the tree of a variant under a directory. It is made and built unless it was
// before from the same description.
func Open(ctx context.Context, src *source.Unpacked, v Variant, dir, drivers string) (*Tree, error) {
	t := &Tree{Unpacked: src, Variant: v, Top: filepath.Join(dir, src.Name, v.Name)}
	if err := t.addDriver(drivers); err != nil {
		return nil, err
	}
	if text, err := os.ReadFile(t.stamp()); err == nil && string(text) == t.Description() {
		return t, t.reopen()
	}
	if err := t.copySources(ctx); err != nil {
		return nil, err
	}
	if src.Configure != "" {
		if err := t.shell(ctx, src.Configure, wholeLimit); err != nil {
			return nil, err
		}
	}
	if src.Compile != nil {
		if err := t.writeMakefile(); err != nil {
			return nil, err
		}
	}
	if err := t.shell(ctx, t.makeCommand(), wholeLimit); err != nil {
		return nil, err
	}
	if err := t.keepOriginal(); err != nil {
		return nil, fmt.Errorf("tree: %w", err)
	}
	return t, os.WriteFile(t.stamp(), []byte(t.Description()), 0o644)
}

// Executable is the path of the program.
func (t *Tree) Executable() string { return filepath.Join(t.Top, t.Program) }

// Original is the path of a copy of the program without a bug.
func (t *Tree) Original() string { return filepath.Join(t.Top+".original", filepath.Base(t.Program)) }

func (t *Tree) keepOriginal() error {
	content, err := os.ReadFile(t.Executable())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.Original()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(t.Original(), content, 0o755)
}

func (t *Tree) stamp() string { return t.Top + ".built" }

// Description is a hash of all that decides how the tree is built.
func (t *Tree) Description() string {
	text := fmt.Appendf(nil, "%s %+v %s %s %s %+v %+v", t.Version, t.Variant, t.Configure, t.Make, t.Program, t.Compile, t.Inputs)
	return fmt.Sprintf("%x", sha256.Sum256(append(text, t.driver...)))
}

// journal names the file that is changed while it is.
func (t *Tree) journal() string { return t.Top + ".changed" }

// reopen undoes the change of an earlier process that was ended in the middle.
func (t *Tree) reopen() error {
	name, err := os.ReadFile(t.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	t.changed = string(name)
	return t.Restore()
}

func (t *Tree) copySources(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(t.Top), os.MkdirAll(filepath.Dir(t.Top), 0o755)); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", t.Dir, t.Top).CombinedOutput(); err != nil {
		return fmt.Errorf("tree: cp: %w: %s", err, out)
	}
	return nil
}

func (t *Tree) makeCommand() string {
	if t.Compile != nil {
		return "make -s -f " + makefile
	}
	return t.Make
}

// environment is that of configure and make. Autotools must not run again: the tools are
// missing or of another version.
func (t *Tree) environment() []string {
	return append(os.Environ(),
		"CC="+t.Variant.CC, "CXX="+t.Variant.CXX, "CFLAGS="+t.Variant.Flags, "CXXFLAGS="+t.Variant.Flags, "LDFLAGS="+t.linkFlags(),
		"FORCE_UNSAFE_CONFIGURE=1", "ASAN_OPTIONS=detect_leaks=0:halt_on_error=0", "LC_ALL=C",
		"MAKEFLAGS=-- AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=: MAKEINFO=true HELP2MAN=true")
}

func (t *Tree) linkFlags() string {
	for f := range strings.FieldsSeq(t.Variant.Flags) {
		if strings.HasPrefix(f, "-fsanitize=") || f == "--coverage" {
			return f
		}
	}
	return ""
}

func (t *Tree) shell(ctx context.Context, command string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir = t.Top
	cmd.Env = t.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return &BuildError{t.Name + " " + t.Variant.Name, tail(string(out)), err}
	}
	return nil
}

// tail is the end of a build's output.
func tail(text string) string {
	const keep = 2000
	if len(text) > keep {
		text = text[len(text)-keep:]
	}
	return strings.TrimSpace(text)
}
