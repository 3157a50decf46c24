package gdbserver_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"diagnose/debug/debugtest"
	"diagnose/internal/recordtest"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// gdb records a program of package debug's testdata, and returns what gdb prints for commands.
func gdb(t *testing.T, source, compiler, level string, commands ...string) string {
	t.Helper()
	return ask(t, debugtest.Serve(t, source, compiler, level), commands...)
}

// ask returns what gdb prints for commands.
func ask(t *testing.T, served *debugtest.Served, commands ...string) string {
	t.Helper()
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
				"next", "next", "reverse-next", "reverse-stepi", "stepi", "reverse-continue", "stepi", "continue")
			shows(t, out, `main \(\) at .*total.c:35`, `\$1 = 19`,
				`Breakpoint 1, (0x[0-9a-f]+ in )?add \(a=.*, b=.*\) at`, `\$2 = 15`, `main \(\)`,
				`Hardware watchpoint 2: total`, `Old value = `, `New value = `, `Old value = `, `New value = `,
				`(hit Temporary breakpoint|Temporary breakpoint) 3, (0x[0-9a-f]+ in )?work`, `\* .* work`,
				`No more reverse-execution history`, `SIGSEGV`)
		})
	}
}

const calledSource = "../../internal/testdata/record/checkpoint/called.c"

const givenUp = `the recording continues as it was recorded`

// Memory and registers that gdb changes, and what functions change that gdb calls, last until the program moves. The recording is as before.
func TestChange(t *testing.T) {
	for _, level := range []string{"-O0", "-O1"} {
		out := gdb(t, "total.c", "gcc", level, "set var $before = total", "set var total = 3", "print total", "print add(total, 4)", "set var $rax = 0x77", "print/x $rax",
			"set var $xmm3.uint128 = 5", "print $xmm3.uint128", "set var $st0 = 1.5", "print $st0", "reverse-stepi", "print total == $before", "print add(4, 4)",
			"set var total = 3", "monitor discard", "continue", "print total == $before", "stepi", "continue", "print total == $before")
		shows(t, out, `\$1 = 3`, `\$2 = 7`, `\$3 = 0x77`, `\$4 = 5`, `\$5 = 1.5`, givenUp, `\$6 = 1`, `\$7 = 8`, "stays here", givenUp, `\$8 = 1`, `SIGSEGV`, `\$9 = 1`)
	}
}

// Calls with arguments in memory and in vector registers; allocations last; a lock of another thread is given back; another thread calls.
func TestCalls(t *testing.T) {
	out := gdb(t, calledSource, "gcc", "-O0", "break place", "reverse-continue", "print sum(1,2,3,4,5,6)", "print scale(1.5, 3.0)", "print count()", "print count()",
		`print copy_text("from gdb")`, "print text", "print lock_lent()", "print lock_kept()", "monitor discard", "continue", "print total", "thread 2", "print count()", "thread 1", "print count()",
		"continue", "print total")
	shows(t, out, `\$1 = 91`, `\$2 = 11.5`, `\$3 = 8`, `\$4 = 9`, `"from gdb"`, `"from gdb"`, `= 10\n`, "it cannot continue; .*every thread waits", "signaled while in a function called", "stays here", `= 7\n`,
		`= 8\n`, "functions were called in thread 2", "SIGSEGV", `= 1\n`)
}

// Ctrl-C ends a call that does not return; the program then continues as recorded.
func TestInterruptedCall(t *testing.T) {
	out := gdb(t, calledSource, "gcc", "-O0", "break place", "reverse-continue",
		"python import threading, os, signal; threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()", "print spin()", "bt", "continue", "print total")
	shows(t, out, "received signal SIGINT", "#0 .* spin", "<function called from gdb>", givenUp, "SIGSEGV", `= 1\n`)
	if strings.Contains(out, "used its time") {
		t.Errorf("the call was not interrupted:\n%s", out)
	}
}

// The user looks into calls: at a breakpoint in the function, by steps there, and at its failure.
func TestWithinCalls(t *testing.T) {
	out := gdb(t, calledSource, "gcc", "-O0", "break place", "reverse-continue", "break count", "print count()", "bt", "stepi", "stepi", "info symbol $pc", "print total", "finish", "print total",
		"print fail(0)", "bt", "continue", "print total", "bt")
	shows(t, out, `Breakpoint 2, count \(\)`, "<function called from gdb>", "#[0-9]+ .* place", `count( \+ [0-9]+)? in section`, `= 7\n`, `Value returned is .* = 8`, `= 8\n`, "received signal SIGSEGV", `#0 .* fail \(p=0x0\)`, "<function called from gdb>", "#[0-9]+ .* place",
		givenUp, "SIGSEGV", `= 1\n`, `#0 .* fail`, "#1 .* main")
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
