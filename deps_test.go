package diagnose_test

import (
	"os/exec"
	"strings"
	"testing"
)

// allowed is the import graph of docs/architecture.md. Every package but these
// two may import evidence and internal/wording. A package or an arrow that is missing here fails the test,
// and so does one that is here and not in the code.
var allowed = map[string]string{
	"evidence":                 "",
	"evidence/signature":       "",
	"evidence/suppress":        "evidence/signature",
	"agent":                    "",
	"agent/agenttest":          "agent",
	"image/x86":                "",
	"replay/ptrace":            "internal/signalsets",
	"image/object":             "",
	"image/debuginfo":          "image/object",
	"image/gotable":            "",
	"image/collected":          "",
	"image":                    "image/collected image/object image/debuginfo image/gotable image/x86 internal/procmaps internal/siginfo",
	"image/formula":            "",
	"image/value":              "image image/debuginfo image/formula image/unwind",
	"image/expression":         "image image/debuginfo image/formula image/value",
	"image/unwind":             "image image/gotable image/object image/x86",
	"image/ptmalloc":           "image",
	"image/allocator":          "image",
	"image/jemalloc":           "image image/allocator",
	"image/tcmalloc":           "image image/allocator",
	"image/pyframes":           "image",
	"canary":                   "agent image image/x86 image/x86/heights",
	"quarantine":               "agent",
	"canary/heapjudge":         "agent canary image image/debuginfo image/unwind image/value quarantine staticscan",
	"canary/mallocjudge":       "image image/ptmalloc image/value image/allocator image/jemalloc image/tcmalloc",
	"canary/mallocsum":         "image image/debuginfo image/ptmalloc image/value",
	"canary/containerjudge":    "image image/debuginfo image/unwind image/value staticscan",
	"canary/stackjudge":        "image image/debuginfo image/unwind image/value image/x86 image/x86/heights",
	"staticscan":               "internal/siginfo image image/debuginfo image/value image/unwind image/x86",
	"diagnosis/failure":        "image image/debuginfo image/unwind image/x86 internal/futex internal/siginfo",
	"replay/record":            "agent image/object internal/privatefile replay/record/eventlog",
	"replay/corefile":          "agent internal/procmaps internal/signalsets",
	"replay/launch":            "replay/ptrace",
	"replay/record/eventlog":   "agent internal/siginfo",
	"replay/record/integrity":  "agent replay/record replay/record/eventlog",
	"replay/recorder":          "internal/futex internal/siginfo agent replay/corefile replay/launch replay/ptrace replay/record replay/record/eventlog replay/recorder/limits replay/recorder/schedule replay/recorder/sites replay/recorder/started",
	"replay/recorder/sites":    "agent image/object image/x86 internal/privatefile internal/procmaps internal/signalsets replay/corefile replay/patch replay/ptrace replay/record replay/record/eventlog",
	"replay/recorder/started":  "image/object replay/launch replay/ptrace replay/record",
	"replay/recorder/schedule": "agent replay/ptrace replay/record replay/record/eventlog replay/recorder/sites",
	"replay/recorder/limits":   "",
	"replay/patch":             "image/x86",
	"replay/tracee":            "internal/siginfo agent image image/x86 internal/procmaps replay/patch replay/ptrace",
	"replay/recorded":          "internal/siginfo agent image image/object replay/ptrace replay/record replay/record/eventlog replay/tracee",
	"replay/loadguard":         "replay/launch replay/ptrace replay/record replay/record/eventlog replay/recorded replay/tracee",
	"replay/step":              "agent image/x86 replay/ptrace replay/recorder/sites replay/tracee replay/translate",
	"replay/translate":         "internal/siginfo internal/signalsets image/x86 replay/patch replay/ptrace replay/tracee",
	"replay/spin":              "image/x86 replay/ptrace replay/tracee",
	"replay/verify":            "agent image replay/ptrace replay/recorded replay/tracee",
	"replay/checkpoint":        "agent internal/procmaps replay/ptrace replay/tracee",
	"replay/inline":            "internal/siginfo image/x86 replay/patch replay/ptrace replay/recorded replay/tracee",
	"replay/breakpoint":        "agent image image/x86 replay/inline replay/patch replay/ptrace replay/record/eventlog replay/recorded replay/tracee",
	"replay/watchpoint":        "agent image image/unwind image/x86 replay/breakpoint replay/inline replay/patch replay/ptrace replay/record/eventlog replay/recorded replay/tracee",
	"replay/tracepoint":        "agent image image/formula image/x86 replay/breakpoint replay/inline replay/patch replay/ptrace replay/recorded replay/tracee",
	"replay":                   "agent image image/unwind image/x86 internal/privatefile internal/siginfo internal/signalsets replay/breakpoint replay/checkpoint replay/inline replay/launch replay/loadguard replay/patch replay/ptrace replay/record replay/record/eventlog replay/recorded replay/recorder/sites replay/spin replay/step replay/tracee replay/tracepoint replay/verify replay/watchpoint",
	"watchtrace":               "agent image image/debuginfo image/value image/x86 replay/record replay staticscan image/unwind replay/record/eventlog",
	"probe":                    "image image/debuginfo image/expression image/formula image/unwind image/value image/x86 replay replay/record replay/record/eventlog watchtrace probe/blocks probe/declare probe/sandbox",
	"ask":                      "agent image image/debuginfo image/expression image/unwind image/value image/x86 probe replay replay/record replay/record/eventlog watchtrace",
	"ask/show":                 "ask reports",
	"debug":                    "image/x86 replay replay/record replay/record/eventlog",
	"debug/gdbserver":          "debug image replay",
	"probe/blocks":             "",
	"probe/declare":            "image/debuginfo image/value",
	"probe/sandbox":            "image/debuginfo image/object internal/procmaps",
	"debug/mi":                 "",
	"debug/dapserver":          "debug debug/mi",
	"image/x86/transfer":       "image/x86",
	"image/x86/heights":        "image/x86",
	"replay/learn":             "agent image image/x86 image/x86/transfer replay replay/record replay/record/eventlog replay/recorder/sites",
	"flow":                     "agent image image/x86 image/x86/transfer replay replay/record replay/record/eventlog",
	"diagnosis/provenance":     "image/debuginfo image/unwind image/value flow image image/x86 image/x86/transfer",
	"delta":                    "",
	"patterns":                 "delta",
	"replay/explore":           "image internal/privatefile replay/record replay replay/corefile replay/record/eventlog replay/recorder",
	"diagnosis/ending":         "image replay/record replay watchtrace replay/record/eventlog",
	"diagnosis/verdict":        "agent delta diagnosis/provenance flow image image/debuginfo image/value image/x86 image/x86/transfer patterns replay/record replay staticscan image/unwind watchtrace internal/futex replay/record/eventlog",
	"diagnosis/racereport":     "",
	"diagnosis/severity":       "image/x86 image/x86/transfer",
	"diagnosis/expected":       "image image/debuginfo image/unwind image/value image/x86 staticscan",
	"image/gocore":             "image image/gotable image/unwind", "reports/secrets": "",
	"internal/instrument": "",
	"diagnosis/driver":    "agent image image/object image/debuginfo image/ptmalloc image/value image/unwind image/x86 image/x86/heights canary canary/heapjudge canary/mallocjudge canary/mallocsum canary/stackjudge staticscan diagnosis/failure image/gocore diagnosis/ending replay/explore replay/record replay diagnosis/verdict watchtrace internal/futex replay/record/eventlog diagnosis/severity image/allocator diagnosis/racereport image/pyframes diagnosis/expected canary/containerjudge",
	"corpus":              "evidence/signature image/collected replay/record evidence/suppress",
	"reports":             "evidence/signature reports/secrets",
	"reports/tracker":     "reports internal/privatefile",
	"fleet/privateroot":   "image/object replay/record replay/record/eventlog",
	"corpus/nightly":      "corpus evidence/suppress reports reports/tracker corpus/analysis",
	"cmd/diagnose":        "agent ask ask/show corpus evidence/suppress internal/procmaps fleet/privateroot replay/explore replay/learn image image/expression diagnosis/driver internal/instrument internal/privatefile corpus/nightly probe replay/record replay reports reports/tracker watchtrace diagnosis/verdict replay/launch replay/record/eventlog replay/record/integrity replay/recorder replay/recorder/sites fleet/engine fleet/share fleet/work fleet/page fleet/collect fleet/collect/spool fleet/collect/corestream debug debug/gdbserver probe/blocks probe/sandbox debug/dapserver debug/mi",
	"corpus/analysis":     "corpus evidence/signature reports",
	"fleet/work":          "corpus corpus/analysis corpus/nightly fleet/engine fleet/privateroot image/object replay/record",
	"fleet/engine":        "",
	"fleet/share":         "corpus fleet/engine",
	"fleet/page":          "corpus corpus/nightly evidence/suppress reports",

	"fleet/collect":            "corpus fleet/collect/corestream fleet/collect/spool fleet/engine fleet/share image/collected image/object internal/privatefile internal/procmaps",
	"fleet/collect/corestream": "reports/secrets",
	"fleet/collect/spool":      "image/collected internal/privatefile",

	"internal/privatefile": "",
	"internal/procmaps":    "",
	"internal/wording":     "",
	"internal/futex":       "",
	"internal/siginfo":     "",
	"internal/signalsets":  "",

	// Tools and test support: nothing above imports them outside its tests.
	"internal/schema":           "",
	"internal/plainenglish":     "",
	"reports/secrets/rulegen":   "",
	"internal/schemagen":        "internal/schema reports",
	"internal/structure":        "",
	"internal/browsertest":      "",
	"internal/crashtest":        "replay/ptrace",
	"internal/realprograms":     "",
	"internal/cases":            "",
	"internal/recordtest":       "agent image replay/record replay replay/launch replay/recorder",
	"internal/accesslog":        "",
	"internal/causetest":        "internal/crashtest internal/recordtest replay/record replay/recorder",
	"bench":                     "image/object",
	"bench/ask":                 "bench/load",
	"bench/atomics":             "image/object replay/recorder/sites",
	"bench/load":                "",
	"bench/causetime":           "bench/load diagnosis/driver replay replay/record replay/recorder",
	"bench/collect":             "",
	"bench/delta":               "delta patterns",
	"bench/flow":                "bench/load flow replay replay/record replay/recorder",
	"bench/fleet":               "corpus corpus/nightly fleet/engine fleet/work reports",
	"bench/frames":              "",
	"bench/leaks":               "",
	"bench/heap":                "agent bench/load",
	"bench/nightly":             "",
	"bench/points":              "",
	"bench/schedule":            "agent bench/load replay/explore replay/record replay/recorder",
	"bench/probe":               "bench/load",
	"bench/record":              "bench/load replay/record",
	"bench/trace":               "bench/load image replay/record replay staticscan watchtrace replay/recorder",
	"bench/turns":               "agent bench/load replay replay/record replay/recorder",
	"bench/truth":               "bench/truth/limit bench/truth/mutant bench/truth/page bench/truth/score bench/truth/source bench/truth/store bench/truth/ways",
	"bench/truth/inject":        "",
	"bench/truth/limit":         "",
	"bench/truth/mutant":        "bench/truth/inject bench/truth/limit bench/truth/sanitizer bench/truth/source bench/truth/tree",
	"bench/truth/page":          "bench/truth/mutant bench/truth/score bench/truth/store bench/truth/ways",
	"bench/truth/sanitizer":     "",
	"bench/truth/score":         "bench/truth/mutant bench/truth/sanitizer",
	"bench/truth/small":         "bench/truth/small/program bench/truth/small/tally bench/truth/small/trial bench/truth/store bench/truth/ways",
	"bench/truth/small/program": "",
	"bench/truth/small/tally":   "bench/truth/page bench/truth/score bench/truth/small/program bench/truth/small/trial bench/truth/store",
	"bench/truth/small/trial":   "bench/truth/limit bench/truth/mutant bench/truth/sanitizer bench/truth/score bench/truth/small/program bench/truth/ways",
	"bench/truth/source":        "",
	"bench/truth/store":         "bench/truth/mutant bench/truth/score bench/truth/ways",
	"bench/truth/threads":       "bench/truth/limit bench/truth/score bench/truth/store bench/truth/threads/raced bench/truth/threads/tally bench/truth/ways",
	"bench/truth/threads/raced": "bench/truth/score",
	"bench/truth/threads/tally": "bench/truth/page bench/truth/score bench/truth/threads/raced",
	"bench/truth/tree":          "bench/truth/source",
	"bench/truth/ways":          "bench/truth/limit bench/truth/source reports",

	"image/allocator/allocatortest": "image image/allocator internal/crashtest",
	"reports/tracker/trackertest":   "",
	"debug/debugtest":               "debug debug/gdbserver internal/recordtest replay replay/record",
	"replay/tracee/traceetest":      "agent replay/tracee",
}

func TestImportGraph(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...", "./bench/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		imports := strings.Fields(line)
		pkg := strings.TrimPrefix(imports[0], "diagnose/")
		if pkg == "diagnose" {
			continue
		}
		seen[pkg] = true
		list, ok := allowed[pkg]
		if !ok {
			t.Errorf("package %s is not in the graph", pkg)
		}
		used := map[string]bool{}
		for _, path := range imports[1:] {
			other, ours := strings.CutPrefix(path, "diagnose/")
			used[other] = true
			if ours && !mayImport(pkg, list, other) {
				t.Errorf("%s imports %s, which the graph does not allow", pkg, other)
			}
		}
		for _, other := range strings.Fields(list) {
			if !used[other] {
				t.Errorf("%s may import %s and does not", pkg, other)
			}
		}
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("package %s is in the graph and not in the tree", pkg)
		}
	}
}

func mayImport(pkg, list, other string) bool {
	if other == "evidence" || other == "internal/wording" {
		return pkg != "evidence" && pkg != "internal/wording"
	}
	for _, ok := range strings.Fields(list) {
		if ok == other {
			return true
		}
	}
	return false
}
