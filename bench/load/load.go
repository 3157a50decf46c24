// Package load is what the benchmarks of the heap and of recording share: how
// programs are built, servers asked and figures summed up.
package load

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// SearchPath finds the distribution's programs and no others.
const SearchPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// Environment is the same on every machine.
func Environment(home string) []string {
	return []string{"PATH=" + SearchPath, "LC_ALL=C", "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
}

// Compile builds a program if it is older than its sources.
func Compile(compiler, source, target string, flags ...string) error {
	newest, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("%w: run this in the root of the source tree", err)
	}
	sources := []os.FileInfo{newest}
	if header, err := os.Stat(filepath.Join(filepath.Dir(source), "bench.h")); err == nil {
		sources = append(sources, header)
	}
	if built, err := os.Stat(target); err == nil {
		fresh := true
		for _, s := range sources {
			fresh = fresh && built.ModTime().After(s.ModTime())
		}
		if fresh {
			return nil
		}
	}
	argv := append([]string{"-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", target, source}, flags...)
	if out, err := exec.Command(compiler, argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", compiler, source, err, out)
	}
	return nil
}

// Record compiles a program, which fails, to the file exe and records it. The recording is the only one in the directory
// recordings next to it.
func Record(diagnose, source, exe string, args ...string) (recording string, err error) {
	if err := os.MkdirAll(filepath.Dir(exe), 0o755); err != nil {
		return "", err
	}
	if err := Compile("gcc", source, exe); err != nil {
		return "", err
	}
	recordings := filepath.Join(filepath.Dir(exe), "recordings")
	if err := os.RemoveAll(recordings); err != nil {
		return "", err
	}
	exec.Command(diagnose, append([]string{"record", "--output", recordings, "--", exe}, args...)...).Run() // its status is the program's
	found, err := filepath.Glob(filepath.Join(recordings, "*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d recordings, want one: %w", len(found), err)
	}
	return found[0], nil
}

// RecordPassed compiles a program, which passes, to the file exe and records a run of it with all its events. The recording is
// the only one in a new directory next to exe.
func RecordPassed(ctx context.Context, diagnose, source, exe string, args ...string) (recording string, err error) {
	if err := Compile("cc", source, exe); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(filepath.Dir(exe), filepath.Base(exe)+"-")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, diagnose, append([]string{"record", "--all", "--output", dir, "--", exe}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, Tail(string(out)))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*-passed"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%s has %d recordings", dir, len(found))
	}
	return found[0], nil
}

// Tail is the end of what a program said on standard error.
func Tail(s string) string {
	const limit = 400
	s = strings.TrimSpace(s)
	if len(s) > limit {
		s = "... " + s[len(s)-limit:]
	}
	return s
}
