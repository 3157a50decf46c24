package agent

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// preloadVariable is what ld.so(8) reads.
const preloadVariable = "LD_PRELOAD"

// Environment returns environ for a program that shall run with the agent:
// the library before all others that are preloaded, and the settings.
func Environment(environ []string, library string, settings Options) []string {
	var kept, preloads []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case preloadVariable:
			preloads = strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ':' })
		case OptionsVariable:
		default:
			kept = append(kept, entry)
		}
	}
	list := []string{library}
	for _, other := range preloads {
		// A second agent, of another diagnose around this one, would have no use.
		if name := filepath.Base(other); name != LibraryName && name != RecordLibraryName {
			list = append(list, other)
		}
	}
	kept = append(kept, preloadVariable+"="+strings.Join(list, ":"))
	if len(settings) > 0 {
		kept = append(kept, OptionsVariable+"="+settings.String())
	}
	return kept
}

// RecordVariable switches the engine of the recording library on, if the
// process is traced as well.
const RecordVariable = "DIAGNOSE_RECORD"

// tunablesVariable is glibc's. With restartable sequences glibc reads the
// processor's number from memory that the kernel writes, which no recording sees.
const (
	tunablesVariable = "GLIBC_TUNABLES"
	rseqTunable      = "glibc.pthread.rseq"
)

// bindVariable has ld.so bind all functions before the program starts. Binding one
// at its first call saves the vector registers on the program's stack by XSAVEC,
// which writes those alone that the processor says are in use: what a context switch
// makes of that is in no recording, and it stays on the stack for later frames.
const bindVariable = "LD_BIND_NOW"

// RecordEnvironment returns environ for a program that shall be recorded, with
// RecordLibrary's library. A replay gets what the recording got. Who sets LD_BIND_NOW,
// to nothing as well, has that kept.
func RecordEnvironment(environ []string, library string, settings Options) []string {
	var kept, tunables []string
	bind := bindVariable + "=1"
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case tunablesVariable:
			tunables = strings.Split(value, ":")
		case bindVariable:
			bind = entry
		case RecordVariable:
		default:
			kept = append(kept, entry)
		}
	}
	tunables = slices.DeleteFunc(tunables, func(t string) bool {
		return t == "" || strings.HasPrefix(t, rseqTunable+"=")
	})
	tunables = append(tunables, rseqTunable+"=0")
	kept = append(kept, bind, tunablesVariable+"="+strings.Join(tunables, ":"), RecordVariable+"=1")
	return Environment(kept, library, settings)
}

// RaiseCoreLimit lets this process and those it starts leave cores as large
// as they may be.
func RaiseCoreLimit() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return fmt.Errorf("getrlimit RLIMIT_CORE: %w", err)
	}
	if limit.Cur == limit.Max {
		return nil
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return fmt.Errorf("setrlimit RLIMIT_CORE: %w", err)
	}
	return nil
}
