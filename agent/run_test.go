package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestEnvironment(t *testing.T) {
	for _, x := range []struct {
		environ  []string
		settings Options
		want     []string
	}{
		{[]string{"A=b"}, nil, []string{"A=b", "LD_PRELOAD=/c/libdiagnose.so"}},
		{[]string{"A=b", "A=c"}, Options{{"stacks", "2"}}, []string{"A=b", "A=c", "LD_PRELOAD=/c/libdiagnose.so", "DIAGNOSE_OPTIONS=stacks=2"}},
		{[]string{"LD_PRELOAD=", "DIAGNOSE_OPTIONS=old"}, nil, []string{"LD_PRELOAD=/c/libdiagnose.so"}},
		{[]string{"LD_PRELOAD=/a.so /b.so:/c.so", "Z="}, nil, []string{"Z=", "LD_PRELOAD=/c/libdiagnose.so:/a.so:/b.so:/c.so"}},
		{[]string{"LD_PRELOAD=/old/libdiagnose.so:/a.so"}, nil, []string{"LD_PRELOAD=/c/libdiagnose.so:/a.so"}},
	} {
		if got := Environment(x.environ, "/c/libdiagnose.so", x.settings); !slices.Equal(got, x.want) {
			t.Errorf("%q: %q, want %q", x.environ, got, x.want)
		}
	}
}

func TestRecordEnvironment(t *testing.T) {
	const added = "DIAGNOSE_RECORD=1 LD_PRELOAD=/c/libdiagnose.so"
	for _, x := range []struct{ environ, want string }{
		{"A=b", "A=b LD_BIND_NOW=1 GLIBC_TUNABLES=glibc.pthread.rseq=0 " + added},
		{"LD_BIND_NOW= DIAGNOSE_RECORD=0", "LD_BIND_NOW= GLIBC_TUNABLES=glibc.pthread.rseq=0 " + added},
		{"GLIBC_TUNABLES=a.b=1:glibc.pthread.rseq=1", "LD_BIND_NOW=1 GLIBC_TUNABLES=a.b=1:glibc.pthread.rseq=0 " + added},
	} {
		if got := strings.Join(RecordEnvironment(strings.Fields(x.environ), "/c/libdiagnose.so", nil), " "); got != x.want {
			t.Errorf("%q: %q, want %q", x.environ, got, x.want)
		}
	}
}

// What the linker makes of the environment: the agent first, then the others.
func TestPreload(t *testing.T) {
	needCompiler(t, "gcc")
	say := func(text string) string {
		sources := standIn(`
int puts(const char *);
__attribute__((constructor)) static void start(void) { puts("` + text + `"); }
`)
		return build(t, BuildOptions{Sources: sources, Compiler: "gcc", Places: []string{t.TempDir()}}).Path
	}
	other := filepath.Join(t.TempDir(), "other.so")
	if err := os.Rename(say("other"), other); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program(t, empty))
	cmd.Env = Environment([]string{"LD_PRELOAD=" + other}, say("agent"), nil)
	// Constructors run in the opposite order of the search for symbols.
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "other\nagent\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func dead(signal syscall.Signal, dumped bool) syscall.WaitStatus {
	status := syscall.WaitStatus(signal)
	if dumped {
		status |= 0x80
	}
	return status
}

func TestFindCore(t *testing.T) {
	kernel, dir, abroad := t.TempDir(), filepath.Join(t.TempDir(), "a[b]*"), t.TempDir()
	kernelSettings = kernel
	t.Cleanup(func() { kernelSettings = "/proc/sys/kernel" })
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	for _, x := range []struct {
		pattern, usesPID, file, says string
	}{
		{"core", "0", dir + "/core", ""},
		{"core", "1", dir + "/core.17", ""},
		{"core.%p", "1", dir + "/core.17", ""},
		{"%e-%s-%%", "0", dir + "/prog-6-%", ""},
		{abroad + "/c[1].%h.%t", "0", abroad + "/c[1].host.1700000000", ""},
		{"core", "0", "", `where core_pattern says, "core"`},
		{"|/usr/share/apport/apport %p", "0", "", "the kernel hands cores to a collector"},
		{"@/run/collector.socket", "0", "", "the kernel hands cores to a collector"},
	} {
		writeFile(t, filepath.Join(kernel, "core_pattern"), 0o600, x.pattern+"\n")
		writeFile(t, filepath.Join(kernel, "core_uses_pid"), 0o600, x.usesPID+"\n")
		if x.file != "" {
			writeFile(t, x.file, 0o600, "")
		}
		d := Death{PID: 17, Status: dead(unix.SIGABRT, true), Directory: dir, Started: started}
		got := FindCore(d)
		if got.Path != x.file || !strings.Contains(got.Why, x.says) {
			t.Errorf("%q: %+v, want %q", x.pattern, got, x.file)
		}
		if x.file == "" {
			continue
		}
		// One of last week is another crash's.
		if err := os.Chtimes(x.file, time.Time{}, started.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := FindCore(d); got.Path != "" {
			t.Errorf("%q: an old core was taken: %+v", x.pattern, got)
		}
		if err := os.Remove(x.file); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(kernel, "core_pattern"), 0o600, "|/lib/systemd/systemd-coredump %P\n")
	if got := FindCore(Death{PID: 17, Status: dead(unix.SIGSEGV, true), Directory: dir}); !got.Dump {
		t.Errorf("systemd's store: %+v", got)
	}
	writeFile(t, filepath.Join(kernel, "core_pattern"), 0o600, "\n")
	if got := FindCore(Death{PID: 17, Status: dead(unix.SIGSEGV, false), Directory: dir}); !strings.Contains(got.Why, "no core was written: ") {
		t.Errorf("no pattern: %+v", got)
	}
}
