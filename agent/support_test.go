package agent_test

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/agent"
)

// The parts of the agent around its allocator, tested with the programs
// src/test/support_*.

// supportAgent builds the library with one compiler, at the first use of these
// sources.
func supportAgent(t *testing.T, compiler string) string {
	t.Helper()
	supportNeeds(t, compiler)
	built, err := agent.Build(t.Context(), agent.BuildOptions{Compiler: compiler})
	if err != nil {
		t.Fatal(err)
	}
	return built.Path
}

func supportNeeds(t *testing.T, command string) {
	t.Helper()
	if _, err := exec.LookPath(command); err != nil {
		t.Skip(&agent.UnsupportedError{What: command + " is not installed"})
	}
}

// supportBuild compiles sources of src/test, or objects by their path.
func supportBuild(t *testing.T, compiler string, args ...string) string {
	t.Helper()
	supportNeeds(t, compiler)
	out := filepath.Join(t.TempDir(), "program")
	for i, arg := range args {
		if strings.HasPrefix(arg, "support_") {
			args[i] = filepath.Join("src/test", arg)
		}
	}
	args = append([]string{"-g", "-Wall", "-Wextra", "-Werror", "-iquote", "src", "-Isrc/test", "-pthread", "-o", out}, args...)
	if text, err := exec.CommandContext(t.Context(), compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", compiler, args, err, text)
	}
	return out
}

// supportRun is a run that ended.
type supportRun struct {
	stdout, stderr string
	status         syscall.WaitStatus
}

// supportStart runs a program, under the agent if library is not empty. What
// hangs is killed and fails.
func supportStart(t *testing.T, library, options string, args ...string) supportRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "DIAGNOSE_OPTIONS="+options)
	if library != "" {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+library)
	}
	cmd.Dir = t.TempDir() // for the core of an abort
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%q hangs\n%s%s", args, &stdout, &stderr)
	}
	return supportRun{stdout.String(), stderr.String(), cmd.ProcessState.Sys().(syscall.WaitStatus)}
}

func (r supportRun) check(t *testing.T, status int) {
	t.Helper()
	if !r.status.Exited() || r.status.ExitStatus() != status {
		t.Errorf("status %#x, want exit status %d\n%s%s", int(r.status), status, r.stdout, r.stderr)
	}
}

func TestSupportStacks(t *testing.T) {
	for _, x := range []struct{ c, cxx string }{{"gcc", "g++"}, {"clang", "clang++"}} {
		t.Run(x.c, func(t *testing.T) {
			t.Parallel()
			probe := supportBuild(t, x.c, "-O2", "-c", "support_probe.c")
			t.Run("unwind", func(t *testing.T) { testUnwind(t, x.c, x.cxx, probe) })
			t.Run("sites", func(t *testing.T) { testSites(t, x.c, probe) })
			t.Run("bound", func(t *testing.T) { testSitesBound(t, x.c, probe) })
		})
	}
}

// The agent's stacks are those of libgcc's unwinder.
func testUnwind(t *testing.T, c, cxx, probe string) {
	for _, flags := range []string{"-O0", "-O2", "-O2 -fno-omit-frame-pointer -no-pie"} {
		run := func(compiler, source string, least int) {
			args := append(strings.Fields(flags), source, probe)
			got := supportStart(t, "", "", supportBuild(t, compiler, args...))
			var checks int
			if n, _ := fmt.Sscanf(got.stdout, "ok %d\n", &checks); n != 1 || checks < least {
				t.Errorf("%s %s %s: %s%s", compiler, flags, source, got.stdout, got.stderr)
			}
		}
		run(c, "support_unwind.c", 31)
		run(cxx, "support_unwind_cxx.cc", 9)
	}
}

func testSites(t *testing.T, compiler, probe string) {
	program := supportBuild(t, compiler, "-O2", "support_sites.c", probe)
	for _, frames := range []string{"1", "2", "8", "12"} {
		got := supportStart(t, "", "stacks="+frames, program, frames)
		got.check(t, 0)
		if got.stdout != "ok 1\n" {
			t.Errorf("%s frames: %s", frames, got.stdout)
		}
	}
}

// A call with very many stacks makes few sites, sooner where it recurs; one
// with many callers shows them.
func testSitesBound(t *testing.T, compiler, probe string) {
	program := supportBuild(t, compiler, "-O2", "support_explode.c", probe)
	for _, x := range []struct{ frames, most, longest, callers int }{
		{1, 0, 1, 1}, {2, 1, 2, 16}, {3, 16, 3, 256}, {8, 600, 5, 4096}, {12, 800, 5, 4096},
	} {
		frames := strconv.Itoa(x.frames)
		got := supportStart(t, "", "stacks="+frames, program, frames)
		got.check(t, 0)
		var recursion, longest, callers int
		if n, _ := fmt.Sscanf(got.stdout, "recursion %d\nlongest %d\ncallers %d\n", &recursion, &longest, &callers); n != 3 ||
			recursion > x.most || x.frames > 3 && recursion < 256 || longest != x.longest || callers != x.callers {
			t.Errorf("%d frames: %s", x.frames, got.stdout)
		}
	}
}

func TestSupportPrograms(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			t.Parallel()
			library := supportAgent(t, compiler)
			threads := map[string]string{"gcc": "20000", "clang": "2000"}[compiler]
			for _, x := range []struct{ compiler, source, argument string }{
				{compiler, "support_fork.c", ""},
				{compiler, "support_churn.c", threads},
				{compiler, "support_signals.c", ""},
				{strings.NewReplacer("gcc", "g++", "clang", "clang++").Replace(compiler), "support_exit.cc", ""},
			} {
				program := supportBuild(t, x.compiler, "-O2", x.source)
				for _, options := range []string{"", "check_interval_ms=1:stacks=12"} {
					got := supportStart(t, library, options, program, x.argument)
					got.check(t, 0)
					if got.stdout != "ok\n" || got.stderr != "" {
						t.Errorf("%s, %q: %s%s", x.source, options, got.stdout, got.stderr)
					}
				}
				if got := supportStart(t, "", "", program, x.argument); got.status.ExitStatus() != 3 {
					t.Errorf("%s succeeds without the agent", x.source)
				}
			}
		})
	}
}

// The check of everything, beside threads that allocate.
func TestSupportCheck(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		got := supportStart(t, "", "on_error=continue", supportBuild(t, compiler, "-O2", "support_check.c"))
		got.check(t, 0)
		if got.stdout != "ok\n" {
			t.Errorf("%s: %s", compiler, got.stdout)
		}
	}
}

// A guard or a fill that is copied over another object's is damage, with any
// secret.
func TestSupportCopy(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		library, program := supportAgent(t, compiler), supportBuild(t, compiler, "-O1", "support_copy.c")
		for _, secret := range []string{"", ":canary=01", ":canary=a7d3c1f5e9b38b95"} {
			got := supportStart(t, library, "on_error=continue:exitcode=66:quarantine_mb=64"+secret, program)
			got.check(t, 0)
			if got.stdout != "ok\n" {
				t.Errorf("%s%s: %s%s", compiler, secret, got.stdout, got.stderr)
			}
		}
	}
}

// The secret of the guards differs from process to process.
func TestSupportSecret(t *testing.T) {
	library, program := supportAgent(t, "gcc"), supportBuild(t, "gcc", "support_options.c")
	first, second := supportStart(t, library, "", program), supportStart(t, library, "", program)
	if first.stdout == second.stdout || !strings.Contains(first.stdout, "canary=") {
		t.Errorf("two processes say %s%s", first.stdout, second.stdout)
	}
}

func TestSupportOptions(t *testing.T) {
	library, program := supportAgent(t, "gcc"), supportBuild(t, "gcc", "support_options.c")
	const defaults = "on_error=0 on_kinds=0 stacks=8 fill_bytes=128 exitcode=0 check_interval_ms=0 quarantine=1048576 canary=SECRET"
	const unknown, unusable = "unknown option", "unusable value"
	long := strings.Repeat("x", 5000)
	for _, x := range []struct {
		options string
		// of defaults: key=value pairs that differ
		want     string
		warnings []string // kind name value
	}{
		{"", "", nil},
		{":::", "", nil},
		{"on_error=log", "on_error=1", nil},
		{"on_error=continue", "on_error=2", nil},
		{"on_error=log:on_error=abort", "", nil},
		{"on_error=log,mismatch=continue,double-free=abort", "on_error=1 on_kinds=300100", nil},
		{"on_error=mismatch=log:on_error=log", "on_error=1", nil},
		{"on_error=log,mismatch=none:on_error=abort,nothing=log:on_error=log,", "", []string{unusable + " on_error log,mismatch=none", unusable + " on_error abort,nothing=log", unusable + " on_error log,"}},
		{"on_error=Log", "", []string{unusable + " on_error Log"}},
		{"on_error=", "", []string{unusable + " on_error "}},
		{"on_error", "", []string{unusable + " on_error "}},
		{"on_error=logs", "", []string{unusable + " on_error logs"}},
		{"on_error=continue=1", "", []string{unusable + " on_error continue=1"}},
		{"stacks=1", "stacks=1", nil},
		{"stacks=12:exitcode=255", "stacks=12 exitcode=255", nil},
		{"stacks=0:stacks=13:stacks=-1:stacks= 4", "",
			[]string{unusable + " stacks 0", unusable + " stacks 13", unusable + " stacks -1", unusable + " stacks %204"}},
		{"fill_bytes=0", "fill_bytes=0", nil},
		{"fill_bytes=4096", "fill_bytes=4096", nil},
		{"fill_bytes=24:fill_bytes=4112", "", []string{unusable + " fill_bytes 24", unusable + " fill_bytes 4112"}},
		{"quarantine_mb=0", "quarantine=0", nil},
		{"quarantine_mb=65536", "quarantine=68719476736", nil},
		{"quarantine_mb=65537:quarantine_mb=18446744073709551617", "",
			[]string{unusable + " quarantine_mb 65537", unusable + " quarantine_mb 18446744073709551617"}},
		{"canary=0x1122334455667788", "canary=1122334455667788", nil},
		{"canary=AB", "canary=abababababababab", nil},
		{"canary=00:canary=1122330055667788:canary=123:canary=0x:canary=zz", "",
			[]string{unusable + " canary 00", unusable + " canary 1122330055667788", unusable + " canary 123", unusable + " canary 0x", unusable + " canary zz"}},
		{"check_interval_ms=4294967295:exitcode=256", "check_interval_ms=4294967295", []string{unusable + " exitcode 256"}},
		{"check_interval_ms=4294967296", "", []string{unusable + " check_interval_ms 4294967296"}},
		{"exitcode=0x10", "", []string{unusable + " exitcode 0x10"}},
		{"Stacks=4:=5:stack=3", "", []string{unknown + " Stacks 4", unknown + "  5", unknown + " stack 3"}},
		{"log_path=:log_path=" + long, "", []string{unusable + " log_path ", unusable + " log_path " + long[:256]}},
		{"log_path=/proc/none/log:log_path=/none/log", "", []string{unusable + " log_path /proc/none/log", unusable + " log_path /none/log"}},
		{"\x1b[2J\n=\xff%:stacks=2", "stacks=2", []string{unknown + " %1b[2J%0a %ff%25"}},
		{long + "=" + long, "", []string{unknown + " " + long[:64] + " " + long[:256]}},
	} {
		want := defaults
		for _, pair := range strings.Fields(x.want) {
			key, _, _ := strings.Cut(pair, "=")
			want = regexp.MustCompile(key+`=\S+`).ReplaceAllString(want, pair)
		}
		var warnings strings.Builder
		for _, w := range x.warnings {
			f := strings.SplitN(w, " ", 4)
			fmt.Fprintf(&warnings, "diagnose: warning: DIAGNOSE_OPTIONS: %s %s name=%s value=%s\n", f[0], f[1], f[2], f[3])
		}
		got := supportStart(t, library, x.options, program)
		got.check(t, 0)
		if strings.Contains(want, "SECRET") {
			got.stdout = regexp.MustCompile(`canary=[0-9a-f]{1,16}\b`).ReplaceAllString(got.stdout, "canary=SECRET")
		}
		if got.stdout != want+"\n" || got.stderr != warnings.String() {
			t.Errorf("%.200q:\n%s%s, want\n%s\n%s", x.options, got.stdout, got.stderr, want, &warnings)
		}
	}
}

// supportKeys are the keys of a line, in the order that src/heap/error.c documents.
var supportKeys = strings.Fields("error when pid tid pointer api object size damage damage_end bytes " +
	"allocated_by allocated_api allocated_at freed_by freed_at stack")

// supportParse takes a line apart and checks its form.
func supportParse(t *testing.T, line string) map[string]string {
	t.Helper()
	fields := strings.Split(line, " ")
	if fields[0] != "diagnose:" {
		t.Fatalf("not a line of the agent's: %q", line)
	}
	values, at := map[string]string{}, 0
	for _, field := range fields[1:] {
		key, value, ok := strings.Cut(field, "=")
		place := slices.Index(supportKeys, key)
		if !ok || value == "" || place < at {
			t.Fatalf("%q is out of place in %q", field, line)
		}
		at = place
		values[key] = value
	}
	return values
}

// supportFunctions names the functions of a stack in a line, up to main.
func supportFunctions(t *testing.T, program, stack string) (names []string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	for place := range strings.SplitSeq(stack, ",") {
		path, hex, ok := strings.Cut(place, "+0x")
		offset, err := strconv.ParseUint(hex, 16, 64)
		if !ok || err != nil {
			t.Fatalf("%q is no place", place)
		}
		if path != program {
			continue
		}
		if last := offset - text.Addr; last < 4 || last >= uint64(len(code)) || code[last-4] != 0xe8 {
			t.Errorf("%q is not within a direct call", place)
		}
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && offset-s.Value < s.Size {
				names = append(names, s.Name)
				if s.Name == "main" {
					return names
				}
			}
		}
	}
	return names
}

func TestSupportErrors(t *testing.T) {
	library := supportAgent(t, "gcc")
	const allocated, freed = "allocate commit main", "release commit main"
	for _, flags := range []string{"-fPIE -pie", "-no-pie"} {
		args := append(strings.Fields(flags), "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "support_errors.c")
		program := supportBuild(t, "gcc", args...)
		for _, x := range []struct{ name, error, when, size, offset, end, bytes, freed, stack string }{
			{"overflow", "overflow", "free", "40", "40", "43", `58..59`, "", freed},
			{"overflow-live", "overflow", "exit", "40", "40", "41", "58", "", ""},
			{"underflow-live", "underflow", "exit", "5000", "-1", "0", "58", "", ""},
			{"overflow-large", "overflow", "exit", "300000", "300001", "300002", "58", "", ""},
			{"underflow-large", "underflow", "exit", "300000", "-3", "-2", "58", "", ""},
			{"write-after-free", "use-after-free", "exit", "40", "8", "9", "57", freed, ""},
			{"write-after-free-large", "use-after-free", "exit", "300000", "17", "18", "57", freed, ""},
			{"overflow-while-running", "overflow", "check", "40", "40", "41", "58", "", ""},
			{"double-free", "double-free", "free", "40", "", "", "", freed, freed},
			{"free-middle", "free-middle", "free", "40", "", "", "", "", freed},
		} {
			options := "on_error=log"
			if x.when == "check" {
				options += ":check_interval_ms=1"
			}
			got := supportStart(t, library, options, program, x.name, "0")
			got.check(t, 0)
			lines := regexp.MustCompile(`(?m)^diagnose:.*$`).FindAllString(got.stderr, -1)
			if len(lines) != 1 || got.stdout != "buffered output\n" {
				t.Errorf("%s: %s%s", x.name, got.stdout, got.stderr)
				continue
			}
			v := supportParse(t, lines[0])
			number := func(key string) int64 {
				n, err := strconv.ParseInt(v[key], 0, 64)
				if err != nil && v[key] != "" {
					t.Errorf("%s: %v", x.name, err)
				}
				return n
			}
			if v["error"] != x.error || v["when"] != x.when || v["size"] != x.size || v["allocated_api"] != "malloc" ||
				v["pid"] != v["tid"] || v["allocated_by"] != v["pid"] || (v["freed_by"] == "") != (x.freed == "") ||
				!regexp.MustCompile("^"+x.bytes+"$").MatchString(v["bytes"]) {
				t.Errorf("%s: %s", x.name, lines[0])
			}
			if x.offset != "" {
				start, end := number("damage")-number("object"), number("damage_end")-number("object")
				if strconv.FormatInt(start, 10) != x.offset || strconv.FormatInt(end, 10) != x.end {
					t.Errorf("%s: damage from %d to %d", x.name, start, end)
				}
			}
			for key, want := range map[string]string{"allocated_at": allocated, "freed_at": x.freed, "stack": x.stack} {
				if want == "" {
					if v[key] != "" {
						t.Errorf("%s: %s", x.name, lines[0])
					}
					continue
				}
				if names := strings.Join(supportFunctions(t, program, v[key]), " "); names != want {
					t.Errorf("%s: %s is %s, want %s\n%s", x.name, key, names, want, lines[0])
				}
			}
		}
	}
}

func TestSupportOnError(t *testing.T) {
	library, program := supportAgent(t, "gcc"), supportBuild(t, "gcc", "-O1", "support_errors.c")
	path := filepath.Join(t.TempDir(), "a log")
	for _, x := range []struct {
		options        string
		errors         []string
		status, want   int
		lines, records int
	}{
		{"on_error=log", []string{"clean"}, 0, 0, 0, 0},
		{"on_error=log:exitcode=66", []string{"clean"}, 0, 0, 0, 0},
		{"on_error=log", []string{"double-free", "free-middle"}, 0, 0, 2, 2},
		{"on_error=log:exitcode=66", []string{"double-free", "overflow-live"}, 0, 66, 2, 1},
		{"on_error=log:exitcode=66", []string{"double-free"}, 7, 7, 1, 1},
		{"on_error=continue:exitcode=66", []string{"overflow", "overflow-live"}, 0, 66, 0, 1},
		{"on_error=continue", []string{"write-after-free"}, 0, 0, 0, 0},
		{"on_error=log:log_path=" + path, []string{"double-free", "free-middle", "overflow"}, 0, 0, 3, 3},
		{"on_error=log:log_path=/nonexistent/log", []string{"double-free"}, 0, 0, 2, 1}, // and a warning at the start
	} {
		args := append([]string{program}, x.errors...)
		got := supportStart(t, library, x.options, append(args, strconv.Itoa(x.status))...)
		got.check(t, x.want)
		text := got.stderr
		if strings.Contains(x.options, path) {
			log, err := os.ReadFile(path)
			if err != nil || strings.Contains(got.stderr, "diagnose:") {
				t.Errorf("%s: %v\n%s", x.options, err, got.stderr)
			}
			text += string(log)
		}
		if n := strings.Count(text, "diagnose:"); n != x.lines || !strings.Contains(text, fmt.Sprintf("errors=%d\n", x.records)) {
			t.Errorf("%s %q: %d lines\n%s", x.options, x.errors, n, text)
		}
		// The program's own output is not lost where its status is changed.
		if got.stdout != "buffered output\n" {
			t.Errorf("%s: output %q", x.options, got.stdout)
		}
	}
	for _, name := range []string{"double-free", "overflow", "overflow-live", "write-after-free-large"} {
		got := supportStart(t, library, "", program, name, "0")
		if !got.status.Signaled() || got.status.Signal() != syscall.SIGABRT || strings.Count(got.stderr, "diagnose:") != 1 {
			t.Errorf("%s: status %#x\n%s", name, int(got.status), got.stderr)
		}
	}
}
