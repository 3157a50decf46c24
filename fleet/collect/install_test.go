package collect

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// host is a root with the files of a host.
func host(t *testing.T, pattern, limit string) *Installation {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not supported here: files of root need root")
	}
	root := t.TempDir()
	for name, text := range map[string]string{patternFile: pattern + "\n", pipeLimitFile: limit + "\n", "/opt/program": "program"} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return &Installation{Root: root, Program: "/opt/program", Config: Default()}
}

func (i *Installation) has(t *testing.T, name, want string) {
	t.Helper()
	text, err := os.ReadFile(i.path(name))
	if want == "" && errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil || !strings.Contains(string(text), want) || want == "" {
		t.Errorf("%s: %q, %v, and want %q", name, text, err, want)
	}
}

const installed = "|/opt/program collect handle %P %I %u %g %s %t"

func TestInstall(t *testing.T) {
	i := host(t, "core.%p", "0")
	for range 2 { // a second one changes nothing, and keeps the former values
		if err := i.Install(); err != nil {
			t.Fatal(err)
		}
		i.has(t, patternFile, installed+"\n")
		i.has(t, pipeLimitFile, "8\n")
		i.has(t, sysctlFile, "kernel.core_pattern = "+installed+"\nkernel.core_pipe_limit = 8\n")
		i.has(t, formerFile, "core.%p")
		if c, err := ReadConfig(i.path(DefaultConfig)); err != nil || c != Default() {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if s, err := i.Status(); err != nil || !s.Installed || s.Former != "core.%p" || s.PipeLimit != 8 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := i.Uninstall(); err != nil {
		t.Fatal(err)
	}
	i.has(t, patternFile, "core.%p\n")
	i.has(t, pipeLimitFile, "0\n")
	i.has(t, sysctlFile, "")
	i.has(t, formerFile, "")
	i.has(t, DefaultConfig, "spool")
	if s, err := i.Status(); err != nil || s.Installed {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestInstallReplaces(t *testing.T) {
	const apport = "|/usr/share/apport/apport %p %s"
	i := host(t, apport, "4")
	var refused *RefusedError
	if err := i.Install(); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	i.has(t, patternFile, apport)
	i.has(t, formerFile, "")
	i.Replace, i.Print = true, true
	lines := 0
	i.Note = func(string) { lines++ }
	if err := i.Install(); err != nil || lines < 8 {
		t.Fatal(err, lines)
	}
	i.has(t, patternFile, apport)
	i.has(t, sysctlFile, "")
	i.Print = false
	if err := i.Install(); err != nil {
		t.Fatal(err)
	}
	i.has(t, patternFile, installed)
	i.has(t, pipeLimitFile, "4") // the administrator's
	// A handler that was set later stays.
	if err := os.WriteFile(i.path(patternFile), []byte("|/other\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := i.Uninstall(); err != nil {
		t.Fatal(err)
	}
	i.has(t, patternFile, "|/other")
	i.has(t, sysctlFile, "")
}

// TestInstallRefuses: programs that the kernel cannot start, or that others may replace.
func TestInstallRefuses(t *testing.T) {
	i := host(t, "core", "0")
	for name, spoil := range map[string]func() error{
		"relative": func() error { i.Program = "diagnose"; return nil },
		"space":    func() error { i.Program = "/opt/a b"; return nil },
		"long":     func() error { i.Program = "/" + strings.Repeat("x", 100); return nil },
		"missing":  func() error { i.Program = "/opt/missing"; return nil },
		"folder":   func() error { i.Program = "/opt"; return nil },
		"writable": func() error { return os.Chmod(i.path("/opt/program"), 0o777) },
		"owner": func() error {
			return errors.Join(os.Chmod(i.path("/opt/program"), 0o755), os.Chown(i.path("/opt/program"), 1000, 1000))
		},
	} {
		i.Program = "/opt/program"
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		var refused *RefusedError
		if err := i.Install(); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	i.has(t, patternFile, "core\n")
}

// TestInstallScan: the units are ones that systemd takes.
func TestInstallScan(t *testing.T) {
	i := host(t, "|/usr/lib/systemd/systemd-coredump %P", "16")
	if err := i.InstallScan(); err != nil {
		t.Fatal(err)
	}
	i.has(t, patternFile, "systemd-coredump")
	i.has(t, unitsDir+scanPath, "PathChanged=/var/lib/systemd/coredump\n")
	i.has(t, unitsDir+scanService, "ExecStart=/opt/program collect scan\n")
	verifyUnits(t, i.path(unitsDir))
	if err := i.Uninstall(); err != nil {
		t.Fatal(err)
	}
	i.has(t, unitsDir+scanPath, "")
}

// verifyUnits has systemd check units, with a program that this machine has.
func verifyUnits(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("not checked: systemd-analyze is not installed")
		return
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	to, args := t.TempDir(), []string{"verify", "--man=no"}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(to, filepath.Base(name))
		text = regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAll(text, []byte("ExecStart=/bin/true"))
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, copied)
	}
	if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil || strings.Contains(string(out), to) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "collect.toml")
	if c, err := ReadConfig(path); err != nil || c != Default() {
		t.Errorf("%+v, %v", c, err)
	}
	for text, good := range map[string]bool{
		"": true, "spool = '/x'\n[limits]\nprogram_rate = 2\nwindow = '5m'": true,
		"[limits]\nprogram_rat = 2": false, "[limits]\nwindow = 'x'": false, "time = '0s'": false, "[limits]\ntotal_mib = -1": false,
		"[limits]\ntotal_mib = 9223372036854775807": false, "[limits]\nhandlers = 0": false, "{": false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := ReadConfig(path); (err == nil) != good || strings.Contains(text, "/x") && (c.Spool != "/x" || c.Limits.ProgramRate != 2) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConfig(path); err == nil {
		t.Error("a file that others may write was read")
	}
}
