package gdbserver_test

import (
	"os/exec"
	"regexp"
	"testing"
	"time"

	"diagnose/debug/debugtest"
	"diagnose/internal/recordtest"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// gdb records a program of package debug's testdata, and returns what gdb prints for commands.
func gdb(t *testing.T, source, compiler, level string, commands ...string) string {
	t.Helper()
	served := debugtest.Serve(t, source, compiler, level)
	arguments := []string{"-nx", "-q", "-batch", "-iex", "set sysroot /", "-iex", "set width 0", "-ex", "target remote " + served.Socket}
	for _, c := range commands {
		arguments = append(arguments, "-ex", c)
	}
	command := exec.Command(served.GDB, append(arguments, served.Program)...)
	time.AfterFunc(2*time.Minute, func() { command.Process.Kill() })
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := <-served.Ended; err != nil {
		t.Error(err)
	}
	return string(out)
}

// shows fails unless the output has the patterns in this order.
func shows(t *testing.T, out string, patterns ...string) {
	t.Helper()
	rest := out
	for _, p := range patterns {
		at := regexp.MustCompile(p).FindStringIndex(rest)
		if at == nil {
			t.Errorf("gdb does not print %q after the one before, in:\n%s", p, out)
			return
		}
		rest = rest[at[1]:]
	}
}

func TestGDB(t *testing.T) {
	debugtest.NeedsWatches(t)
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			out := gdb(t, "total.c", compiler, "-O0",
				"bt", "print total", "break add", "reverse-continue", "print total", "reverse-finish", "reverse-next",
				"next", "delete", "watch total", "reverse-continue", "continue", "delete", "tbreak work", "reverse-continue", "info threads",
				"next", "next", "reverse-next", "reverse-stepi", "stepi", "set var total = 3", "print add(1, 2)", "reverse-continue", "stepi", "continue")
			shows(t, out, `main \(\) at .*total.c:35`, `\$1 = 19`,
				`Breakpoint 1, (0x[0-9a-f]+ in )?add \(a=.*, b=.*\) at`, `\$2 = 15`, `main \(\)`,
				`Hardware watchpoint 2: total`, `Old value = `, `New value = `, `Old value = `, `New value = `,
				`(hit Temporary breakpoint|Temporary breakpoint) 3, (0x[0-9a-f]+ in )?work`, `\* .* work`,
				`Cannot access memory`,
				`No more reverse-execution history`, `SIGSEGV`)
		})
	}
}

// Memory that gdb refuses to change is as before, and so is the end.
func TestUnchanged(t *testing.T) {
	out := gdb(t, "total.c", "gcc", "-O1", "set var total = 3", "print total", "set var $rax = 1", "print add(1, 2)", "print total")
	shows(t, out, "Cannot access memory", `\$1 = `, "cannot be changed", "Cannot access memory", `\$2 = `)
	values := regexp.MustCompile(`(?m)^\$\d = (.*)$`).FindAllStringSubmatch(out, -1)
	if len(values) != 2 || values[0][1] != values[1][1] {
		t.Errorf("the total changed:\n%s", out)
	}
}

func TestMonitor(t *testing.T) {
	debugtest.NeedsWatches(t)
	out := gdb(t, "total.c", "gcc", "-O0", "monitor help", "monitor when", "monitor goto 2:3", "continue", "monitor when", "monitor goto nowhere",
		"monitor goto end", "continue", "monitor who-wrote &total 4", "python gdb.execute('monitor who-wrote %d 4' % int(gdb.parse_and_eval('(long)&total')))",
		"monitor who-wrote 0xffffffffffffff00 8", "monitor cause")
	shows(t, out, "monitor when", `1:\d+:0x[0-9a-f]+`, "leads there", "stopped", `2:\d+`, "no moment", "SIGSEGV", "no address",
		`4 bytes at 0x[0-9a-f]+ were last stored to by thread 1 at main \(.*total.c:33\), moment 1:\d+:0x`, "no program has memory", "no diagnosis")
}

// gdb stops at recorded signals before their handlers, in both directions, where the program was interrupted; steps lead into a handler and out
// of it again. A signal that gdb passes does not stop the program.
func TestSignals(t *testing.T) {
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			out := gdb(t, "signals.c", "gcc", level, "handle SIGALRM stop print", "print repaired", "reverse-continue", "info symbol $pc", "stepi", "info symbol $pc", "reverse-stepi", "info symbol $pc",
				"reverse-continue", "print repaired", "reverse-continue", "print alarms", "reverse-continue",
				"handle SIGSEGV nostop noprint pass", "continue", "continue", "print repaired", "continue")
			shows(t, out, `\$1 = 1`, `received signal SIGUSR1`, `kill \+ `, `on_usr`, `received signal SIGUSR1`, `kill \+ `,
				`received signal SIGSEGV`, `\$2 = 0`, `received signal SIGALRM`, `\$3 = 0`, `received signal SIGUSR1`,
				`received signal SIGALRM`, `received signal SIGUSR1`, `\$4 = 1`)
		})
	}
}
