package collect

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/internal/privatefile"
)

// Places of an installation, below its root.
const (
	patternFile   = "/proc/sys/kernel/core_pattern"
	pipeLimitFile = "/proc/sys/kernel/core_pipe_limit"
	// sysctlFile is read at boot after systemd's 50-coredump.conf (sysctl.d(5)).
	sysctlFile = "/etc/sysctl.d/60-diagnose-collect.conf"
	formerFile = "/var/lib/diagnose/core_pattern.former"
	unitsDir   = "/etc/systemd/system"
)

const (
	// handlerArguments follow the program in core_pattern (core(5)). The kernel splits the pattern at
	// spaces before it puts the values in, and all of these are numbers.
	handlerArguments = " collect handle %P %I %u %g %s %t"
	// longestPattern is CORENAME_MAX_SIZE without its NUL (fs/coredump.c).
	longestPattern = 127
	// pipeLimit is the value for kernel.core_pipe_limit: so many handlers run at a time, and the
	// kernel holds the crashed process until its handler has ended. With 0 it would not.
	pipeLimit = 8
)

// Installation is a host whose cores are to be collected.
type Installation struct {
	// Root is put before all paths; "" is this host.
	Root string
	// Program is the path of diagnose, as the host sees it.
	Program string
	// Config is the configuration that is written, unless there is one.
	Config Config
	// Replace allows to replace another handler of cores.
	Replace bool
	// Note is told of each step before it is taken; nil: it is not. Print leaves the steps out.
	Note  func(string)
	Print bool
}

// former are the values before the installation.
type former struct {
	Pattern   string `json:"core_pattern"`
	PipeLimit int    `json:"core_pipe_limit"`
}

// RefusedError says why an installation was not changed.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func (i *Installation) path(name string) string { return filepath.Join(i.Root, name) }

// pattern is the core_pattern that starts the handler.
func (i *Installation) pattern() string { return "|" + i.Program + handlerArguments }

func ours(pattern string) bool {
	return strings.HasPrefix(pattern, "|/") && strings.HasSuffix(pattern, handlerArguments)
}

// current reads the values that are set.
func (i *Installation) current() (former, error) {
	var f former
	text, err := os.ReadFile(i.path(patternFile))
	if err != nil {
		return f, err
	}
	f.Pattern = strings.TrimSuffix(string(text), "\n")
	if text, err = os.ReadFile(i.path(pipeLimitFile)); err != nil {
		return f, err
	}
	f.PipeLimit, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return f, err
}

// checkProgram refuses a program that the kernel could not start, or that others may replace: the kernel runs
// it as root.
func (i *Installation) checkProgram() error {
	if !filepath.IsAbs(i.Program) || strings.ContainsAny(i.Program, " \t\n%\"'\\") {
		return &RefusedError{fmt.Sprintf("%q cannot be in core_pattern: it takes an absolute path without spaces, quotes and %%", i.Program)}
	}
	if n := len(i.pattern()); n > longestPattern {
		return &RefusedError{fmt.Sprintf("core_pattern has room for %d bytes, and with %s it takes %d", longestPattern, i.Program, n)}
	}
	for path := i.Program; ; path = filepath.Dir(path) {
		var info unix.Stat_t
		if err := unix.Stat(i.path(path), &info); err != nil {
			return &RefusedError{fmt.Sprintf("%s: %v", i.path(path), err)}
		}
		if info.Uid != 0 || info.Mode&0o022 != 0 && info.Mode&unix.S_ISVTX == 0 {
			return &RefusedError{fmt.Sprintf("%s may be changed by others than root (owner %d, mode %#o), and the kernel would run it as root",
				i.path(path), info.Uid, info.Mode&0o7777)}
		}
		if path == i.Program && (info.Mode&unix.S_IFMT != unix.S_IFREG || info.Mode&0o111 == 0) {
			return &RefusedError{fmt.Sprintf("%s is no program", i.path(path))}
		}
		if path == "/" {
			return nil
		}
	}
}

// Install makes the handler the one of all cores of the host, now and after a boot. The former values
// are kept for Uninstall.
func (i *Installation) Install() error {
	if err := i.checkProgram(); err != nil {
		return err
	}
	now, err := i.current()
	if err != nil {
		return err
	}
	if strings.HasPrefix(now.Pattern, "|") && !ours(now.Pattern) && !i.Replace {
		return &RefusedError{fmt.Sprintf("cores go to another handler: %s; it is replaced with --replace", now.Pattern)}
	}
	steps := []step{}
	if !ours(now.Pattern) {
		text, err := json.Marshal(now)
		if err != nil {
			return err
		}
		steps = append(steps, step{formerFile, string(text) + "\n", "keep the former core_pattern"})
	}
	if step, err := i.configStep(); err != nil {
		return err
	} else if step.path != "" {
		steps = append(steps, step)
	}
	limit := now.PipeLimit
	if limit == 0 || ours(now.Pattern) {
		limit = pipeLimit
	}
	steps = append(steps,
		step{sysctlFile, fmt.Sprintf("# Written by diagnose collect install; removed by diagnose collect uninstall.\nkernel.core_pattern = %s\nkernel.core_pipe_limit = %d\n", i.pattern(), limit), "set it at boot"},
		step{pipeLimitFile, fmt.Sprintf("%d\n", limit), "set the number of handlers"},
		step{patternFile, i.pattern() + "\n", "set core_pattern"})
	return i.take(steps)
}

// configStep writes the configuration, unless there is one.
func (i *Installation) configStep() (step, error) {
	if _, err := os.Lstat(i.path(DefaultConfig)); err == nil {
		return step{}, nil
	}
	text, err := i.Config.Encode()
	return step{DefaultConfig, string(text), "write the configuration"}, err
}

// Uninstall sets the former values. A core_pattern that is not the handler's stays. Spool and
// configuration stay.
func (i *Installation) Uninstall() error {
	now, err := i.current()
	if err != nil {
		return err
	}
	before := former{Pattern: "core"} // the kernel's default
	switch text, err := os.ReadFile(i.path(formerFile)); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &before); err != nil || strings.Contains(before.Pattern, "\n") {
			return fmt.Errorf("%s: it is damaged; set core_pattern by hand", i.path(formerFile))
		}
	}
	var steps []step
	if ours(now.Pattern) {
		steps = append(steps, step{patternFile, before.Pattern + "\n", "set the former core_pattern"},
			step{pipeLimitFile, fmt.Sprintf("%d\n", before.PipeLimit), "set the former number of handlers"})
	}
	for _, name := range []string{sysctlFile, formerFile} {
		steps = append(steps, step{name, "", "remove it"})
	}
	return i.take(append(steps, i.removedUnits()...))
}

// step is a file that is written or, without a text, removed.
type step struct{ path, text, why string }

func (i *Installation) take(steps []step) error {
	for _, s := range steps {
		path := i.path(s.path)
		if _, err := os.Lstat(path); s.text == "" && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if i.Note != nil {
			i.Note(fmt.Sprintf("%s: %s", path, s.why))
			for line := range strings.Lines(s.text) {
				i.Note("    " + strings.TrimSuffix(line, "\n"))
			}
		}
		if i.Print {
			continue
		}
		if err := s.apply(path); err != nil {
			return err
		}
	}
	return nil
}

func (s step) apply(path string) error {
	if s.text == "" {
		return os.Remove(path)
	}
	if strings.HasPrefix(s.path, "/proc/") {
		return os.WriteFile(path, []byte(s.text), 0) // which is not replaced, but written
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := privatefile.Write(path, []byte(s.text)); err != nil {
		return err
	}
	if strings.HasPrefix(s.path, "/etc/sysctl.d/") || strings.HasPrefix(s.path, unitsDir) {
		return os.Chmod(path, 0o644)
	}
	return nil
}

// InstallStatus are the values that are set on a host.
type InstallStatus struct {
	Pattern   string
	PipeLimit int
	// Installed says that cores go to the handler. Former is the core_pattern that Uninstall sets.
	Installed bool
	Former    string
}

// Status returns the values that are set.
func (i *Installation) Status() (InstallStatus, error) {
	now, err := i.current()
	if err != nil {
		return InstallStatus{}, err
	}
	s := InstallStatus{Pattern: now.Pattern, PipeLimit: now.PipeLimit, Installed: ours(now.Pattern)}
	var before former
	if text, err := os.ReadFile(i.path(formerFile)); err == nil && json.Unmarshal(text, &before) == nil {
		s.Former = before.Pattern
	}
	return s, nil
}
