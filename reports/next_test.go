package reports

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

// The kernel keeps 79 bytes of a command line, in which a space may be part of an argument.
func TestCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"server -p 80":                      "server -p 80",
		"":                                  "/srv/server ARGUMENTS",
		"server " + strings.Repeat("x", 72): "/srv/server ARGUMENTS",
		"server $(reboot)":                  "/srv/server ARGUMENTS",
		"server a;b":                        "/srv/server ARGUMENTS",
	} {
		if got := commandLine(&evidence.Program{Exe: "/srv/server", Args: args}); got != want {
			t.Errorf("%q: %q", args, got)
		}
	}
}
