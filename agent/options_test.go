package agent

import (
	"errors"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// optionTable is what Set says to values, and so must the agent.
var optionTable = []struct{ name, value, refused string }{
	{"on_error", "abort", ""},
	{"on_error", "log", ""},
	{"on_error", "continue", ""},
	{"on_error", "Abort", `on_error: it is one of abort, log, continue, not "Abort"`},
	{"log_path", "/var/log/a b", ""},
	{"on_error", "abort,mismatch=log,double-free=continue", ""},
	{"on_error", "mismatch=log", ""},
	{"on_error", "log,mismatched=abort", "\"mismatched\" is no kind of error"},
	{"on_error", "abort,mismatch=", "abort, log, continue"},
	{"on_error", "abort,", "abort, log, continue"},
	{"log_path", "", "log_path: the name of the file is empty"},
	{"log_path", "a:b", "a colon"},
	{"log_path", strings.Repeat("x", 4096), "4096 bytes"},
	{"quarantine_mb", "0", ""},
	{"quarantine_mb", "65536", ""},
	{"quarantine_mb", "65537", "from 0 to 65536"},
	{"quarantine_mb", "-1", "from 0 to 65536"},
	{"quarantine_mb", "", "from 0 to 65536"},
	{"canary", "a7", ""},
	{"canary", "0xa7d3c1f5e9b38b95", ""},
	{"canary", "a7d3c1f5e9b38b", "1 or 8 bytes"},
	{"canary", "a7d300f5e9b38b95", "none of them 0"},
	{"canary", "xyzxyzxyzxyzxyzx", "hexadecimal"},
	{"fill_bytes", "128", ""},
	{"fill_bytes", "12", "a multiple of 8 from 0 to 4096"},
	{"fresh_byte", "85", ""},
	{"fresh_byte", "0", "from 1 to 255"},
	{"fresh_byte", "256", "from 1 to 255"},
	{"stacks", "12", ""},
	{"stacks", "0", "from 1 to 12"},
	{"check_interval_ms", "4294967295", ""},
	{"check_interval_ms", "4294967296", "4294967295"},
	{"exitcode", "255", ""},
	{"exitcode", "256", "from 0 to 255"},
	{"exit_code", "1", `unknown option "exit_code": it is one of canary, check_interval_ms, `},
}

func TestOptions(t *testing.T) {
	for _, x := range optionTable {
		var o Options
		err := o.Set(x.name, x.value)
		switch {
		case x.refused == "" && (err != nil || o.String() != x.name+"="+x.value):
			t.Errorf("%s=%s: %v, %q", x.name, x.value, err, o)
		case x.refused != "" && (err == nil || !strings.Contains(err.Error(), x.refused) || len(o) > 0):
			t.Errorf("%s=%s: %v, want %q in it", x.name, x.value, err, x.refused)
		}
	}
}

func TestOptionsAreMerged(t *testing.T) {
	o := ParseOptions("stacks=2:on_error=log::unheard_of=1:stacks=3:novalue")
	if err := o.Set("stacks", "4"); err != nil {
		t.Fatal(err)
	}
	if got, want := o.String(), "on_error=log:unheard_of=1:novalue=:stacks=4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if o := ParseOptions(""); len(o) != 0 || o.String() != "" {
		t.Errorf("nothing became %q", o)
	}
}

// The agent and this package must know the same names.
func TestOptionNamesAreTheAgents(t *testing.T) {
	text, err := fs.ReadFile(Sources(), "heap/options.c")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`DG_NAME\("(\w+)"\)`).FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	if !slices.Equal(names, OptionNames()) {
		t.Errorf("src/heap/options.c takes %q, Set takes %q", names, OptionNames())
	}
}

// A value that Set refuses is one that the agent warns of, and no other.
func TestOptionsAgreeWithTheAgent(t *testing.T) {
	library, err := Library(t.Context())
	if unsupported := (*UnsupportedError)(nil); errors.As(err, &unsupported) {
		t.Skip(unsupported)
	}
	if err != nil {
		t.Fatal(err)
	}
	prog := program(t, empty)
	for _, x := range optionTable {
		cmd := exec.Command(prog)
		cmd.Env = Environment(nil, library, Options{{x.name, x.value}})
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s=%s: %v\n%s", x.name, x.value, err, said)
		}
		if warned := strings.HasPrefix(string(said), "diagnose: warning: DIAGNOSE_OPTIONS:"); warned != (x.refused != "") || !warned && len(said) > 0 {
			t.Errorf("%s=%s: the agent says %q, Set refuses it with %q", x.name, x.value, said, x.refused)
		}
	}
}
