package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"diagnose/agent"
	"diagnose/replay/record"
)

// panicStatus is the exit status of Go's runtime after a panic or a fatal error (runtime/panic.go),
// and of many programs after a wrong command line.
const panicStatus = 2

// tracebackVariable, set to tracebackCrash, has Go's runtime end the process by SIGABRT
// instead.
const (
	tracebackVariable = "GOTRACEBACK"
	tracebackCrash    = "crash"
	crashSetting      = tracebackVariable + "=" + tracebackCrash
)

// panicAdvice returns advice about a Go program that may have panicked and left no core; empty for
// other programs.
func panicAdvice(program string, status int) string {
	if status != panicStatus || !agent.IsGoProgram(program) {
		return ""
	}
	return fmt.Sprintf("%s is a Go program, which exits with status %d after a panic and leaves no core; with %s in its environment it leaves one",
		program, panicStatus, crashSetting)
}

// advisePanic is sayPanic for a recording without a core.
func advisePanic(rec *record.Recording) {
	m := rec.Manifest
	if _, err := os.Stat(filepath.Join(rec.Dir, record.CoreName)); err == nil || m.Outcome.Kind != record.OutcomeExit ||
		slices.Contains(record.Strings(m.Program.Environ), crashSetting) {
		return
	}
	if text := panicAdvice(string(m.Program.Path), m.Outcome.Status); text != "" {
		say(text)
	}
}

// sayPanic prints the advice of panicAdvice unless the user followed it already.
func sayPanic(program string, status syscall.WaitStatus) {
	if !status.Exited() || os.Getenv(tracebackVariable) == tracebackCrash {
		return
	}
	if text := panicAdvice(program, status.ExitStatus()); text != "" {
		say(text)
	}
}
