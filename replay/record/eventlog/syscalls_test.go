package eventlog

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/agent"
)

// tableProgram prints the engine's table: number, name, arguments, and which of them are texts.
const tableProgram = `
#include <stdio.h>
#include "engine/table.c"

int main(void)
{
	for (unsigned i = 0; i < DG_ROWS; i++) {
		const struct dg_row *r = dg_rows + i;

		if (!r->name)
			continue;
		printf("%u %s %u %u ", i, r->name, r->args, r->class_);
		for (unsigned p = 0; p < DG_PARTS; p++)
			if (r->parts[p].how == DG_IN_TEXT)
				printf("%u", r->parts[p].arg);
		printf(".\n");
	}
	return 0;
}
`

// engineTable returns the C table, as tableProgram prints it.
func engineTable(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, agent.Sources()); err != nil {
		t.Fatal(err)
	}
	source, exe := filepath.Join(dir, "table_main.c"), filepath.Join(dir, "table")
	if err := os.WriteFile(source, []byte(tableProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command("cc", "-iquote", dir, "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestSyscallsAgainstTheEngine(t *testing.T) {
	table := engineTable(t)
	if len(table) < 350 {
		t.Fatalf("the table has %d rows", len(table))
	}
	seen := map[string]bool{}
	for _, line := range table {
		var (
			number            uint64
			name, texts       string
			args, class, want int
		)
		if _, err := fmt.Sscanf(line, "%d %s %d %d %s", &number, &name, &args, &class, &texts); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		form, ok := syscallForms[name]
		if got := SyscallName(number); got != name || !ok {
			t.Errorf("call %d is %s, with arguments known: %t; the engine has %s", number, got, ok, name)
			continue
		}
		seen[name] = true
		const refuse = 7 // DG_CALL_REFUSE
		if known := refusedWhy[name] != "" || lacking[name]; class == refuse && !known || class != refuse && lacking[name] {
			t.Errorf("%s has class %d, and refused.go says %q, %t", name, class, refusedWhy[name], lacking[name])
		}
		if form.args != args {
			t.Errorf("%s has %d arguments, the engine logs %d", name, form.args, args)
		}
		for _, digit := range strings.TrimSuffix(texts, ".") {
			want++
			if !form.texts[int(digit-'0')] {
				t.Errorf("%s: argument %c is a text for the engine", name, digit)
			}
		}
		// The path of execve is in its own event.
		if len(form.texts) != want && !strings.HasPrefix(name, "execve") {
			t.Errorf("%s: %d texts, the engine has %d", name, len(form.texts), want)
		}
	}
	for name := range syscallForms {
		if !seen[name] {
			t.Errorf("the engine has no %s", name)
		}
	}
}

func TestCallText(t *testing.T) {
	for want, e := range map[string]*Event{
		`openat(-100, "/etc/passwd", 524288, 0)`: {
			Object: 257, Args: []uint64{0xffffff9c, 0x7ffe1000, 524288, 0},
			Payloads: []Payload{{0x7ffe1000, PayloadText, []byte("/etc/passwd")}},
		},
		`openat(-100, 0x7ffe1000, 0, 0)`: {Object: 257, Args: []uint64{0xffffffffffffff9c, 0x7ffe1000, 0, 0}},
		`999(1)`:                         {Object: 999, Args: []uint64{1}},
	} {
		e.Kind = KindSyscall
		if got := e.CallText(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
