package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Death is a process that a signal ended, as its parent saw it.
type Death struct {
	PID    int
	Status syscall.WaitStatus
	// Directory is where the process was started; it may have left it.
	Directory string
	Started   time.Time
}

// Core is what became of the core of a process that died.
type Core struct {
	// Path is the core's file, empty if it is not known.
	Path string
	// Dump says that systemd keeps it, for coredumpctl.
	Dump bool
	// Why says in words why there is no path.
	Why string
}

// kernelSettings is where core(5) says they are; tests have their own.
var kernelSettings = "/proc/sys/kernel"

// FindCore looks for the core by the kernel's rules (core(5)).
func FindCore(d Death) Core {
	pattern, err := readSetting("core_pattern")
	if err != nil {
		return Core{Why: err.Error()}
	}
	collector := strings.HasPrefix(pattern, "|") || strings.HasPrefix(pattern, "@")
	switch {
	case !d.Status.CoreDump():
		return Core{Why: "no core was written: " + whyNone(d, pattern, collector)}
	case collector && strings.Contains(pattern, "systemd-coredump"):
		return Core{Dump: true}
	case collector:
		return Core{Why: fmt.Sprintf("the kernel hands cores to a collector here: core_pattern is %q", pattern)}
	}
	if path := newestCore(d, pattern); path != "" {
		return Core{Path: path}
	}
	return Core{Why: fmt.Sprintf("a core was written where core_pattern says, %q, in the directory that the program worked in", pattern)}
}

func whyNone(d Death, pattern string, collector bool) string {
	var limit unix.Rlimit
	switch err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); {
	case err == nil && limit.Max == 0 && !collector:
		return "the hard limit of its size is 0 (ulimit -Hc)"
	case pattern == "":
		return "core_pattern is empty"
	case !collector && !strings.HasPrefix(pattern, "/") && unix.Access(d.Directory, unix.W_OK|unix.X_OK) != nil:
		return fmt.Sprintf("the program may not write to %s", d.Directory)
	}
	return fmt.Sprintf("core(5) lists the reasons; core_pattern is %q", pattern)
}

func readSetting(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(kernelSettings, name))
	return strings.TrimSuffix(string(text), "\n"), err
}

// newestCore is the last file written among those that the pattern can mean.
func newestCore(d Death, pattern string) string {
	usesPID, err := readSetting("core_uses_pid")
	if err != nil {
		return ""
	}
	glob := coreGlob(pattern, d, usesPID != "0")
	if !filepath.IsAbs(glob) {
		glob = filepath.Join(globQuote(d.Directory), glob)
	}
	paths, _ := filepath.Glob(glob) // the only error is a bad pattern
	var newest string
	// A file's time is taken from a clock that may lag by a tick.
	last := d.Started.Add(-time.Second)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.ModTime().After(last) {
			newest, last = path, info.ModTime()
		}
	}
	return newest
}

// coreGlob replaces the known ones of the pattern's specifiers, and lets the
// others be anything.
func coreGlob(pattern string, d Death, usesPID bool) string {
	var b strings.Builder
	hasPID := false
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteString(globQuote(pattern[i : i+1]))
			continue
		}
		i++
		switch pattern[i] {
		case 'p':
			hasPID = true
			b.WriteString(strconv.Itoa(d.PID))
		case 's':
			b.WriteString(strconv.Itoa(int(d.Status.Signal())))
		case '%':
			b.WriteByte('%')
		default:
			b.WriteByte('*')
		}
	}
	if usesPID && !hasPID {
		b.WriteString("." + strconv.Itoa(d.PID))
	}
	return b.String()
}

func globQuote(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if slices.Contains([]byte(`*?[\`), c) {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
