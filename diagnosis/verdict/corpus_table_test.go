package verdict_test

import (
	"fmt"
	"strings"
	"time"
)

func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Programs with known causes

Each program of internal/testdata/cause is recorded failing once and passing %d times; what
"diagnose crash --recording REC --passing ..." names first is compared with the expectation
next to the bug. "With" counts the replays that failed with the named cause (the order as
recorded, or forced on a passing run), "without" those that did not fail without it.
"Proof" is the report's. The compiler is gcc, or rustc, unless it is said. Made by

    make causes

`, passingRuns)
	b.WriteString("| program | expected | line | found first | line | proof | with | without | passes | accesses | time |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	right := 0
	for _, r := range rows {
		found, line, proof, with, without := "unknown", "", "", 0, 0
		if r.cause != nil {
			found, proof = fmt.Sprintf("%s %s", r.cause.Kind, r.cause.Variable), string(r.cause.Proof)
			with, without = replaysOf(r.cause, true), replaysOf(r.cause, false)
			if i := r.cause.Interleaving; i != nil {
				found = fmt.Sprintf("%s %s of %s", r.cause.Kind, i.Pattern, strings.Join(i.Variables, " and "))
			}
			if r.cause.Site != nil {
				line = fmt.Sprint(r.cause.Site.Line)
			}
		}
		if r.verdict == "" {
			right++
		} else {
			found += " (wrong: " + r.verdict + ")"
		}
		fmt.Fprintf(&b, "| %s | %s %s %s | %d | %s | %s | %s | %d | %d | %d | %d | %v |\n", r.c, r.c.Kind, r.c.Pattern, r.c.Variable, r.c.Line,
			strings.ReplaceAll(found, "|", `\|`), line, proof, with, without, r.passes, r.hits, r.took.Round(10*time.Millisecond))
	}
	programs := map[string]bool{}
	for _, r := range rows {
		programs[r.c.Name] = true
	}
	fmt.Fprintf(&b, "\n%d of %d are right, of %d programs.\n", right, len(rows), len(programs))
	return b.String()
}
