package agent_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"diagnose/agent"
)

// Metadata, and the start of the objects' window, must not be in huge pages: a
// small program would have several megabytes of them.
func TestSmallPages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip(&agent.UnsupportedError{What: "the kernel has no transparent huge pages"})
	}
	library := supportAgent(t, "gcc")
	got := supportStart(t, library, "", "/bin/cat", "/proc/self/smaps")
	got.check(t, 0)
	seen := map[string]bool{}
	name, table := "", false
	for lines := bufio.NewScanner(strings.NewReader(got.stdout)); lines.Scan(); {
		line := lines.Text()
		if head, flags, ok := strings.Cut(line, ":"); ok && head == "VmFlags" {
			if name == "" {
				continue
			}
			seen[name] = true
			if !slices.Contains(strings.Fields(flags), "nh") {
				t.Errorf("%s: may be in huge pages: %s", name, flags)
			}
			continue
		}
		var start, end uint64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &start, &end, &mode); n != 3 {
			continue
		}
		fields := strings.Fields(line)
		anonymous := len(fields) == 5
		name = window(start)
		if name == "" && table && anonymous && mode == "rw-p" {
			name = "tables" // of the library, after its data
		}
		table = !anonymous && fields[5] == library
	}
	for _, w := range []string{"root", "heaps", "threads", "sites", "spans", "meta", "objects", "tables"} {
		if !seen[w] {
			t.Errorf("no mapping of %s seen", w)
		}
	}
}

// window names the agent's window that an address is in.
func window(at uint64) string {
	at -= agent.Base
	if at >= agent.OffObjects+agent.ObjectsLimit {
		return ""
	}
	for _, w := range []struct {
		offset uint64
		name   string
	}{
		{agent.OffObjects, "objects"}, {agent.OffMeta, "meta"}, {agent.OffSpans, "spans"},
		{agent.OffSites, "sites"}, {agent.OffThreads, "threads"}, {agent.OffHeaps, "heaps"},
	} {
		if at >= w.offset {
			return w.name
		}
	}
	return "root"
}
