package cases

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// row is a variant's result.
type row struct {
	e     *entry
	flags []string
	j     judgement
}

func TestCases(t *testing.T) {
	full := os.Getenv("DIAGNOSE_MATRIX") == "full"
	var rows []row
	list := entries(t)
	for i := range list {
		e := &list[i]
		variants := e.Variants
		if !full {
			if !e.Quick {
				continue
			}
			variants = variants[:1]
		}
		for _, flags := range variants {
			name := strings.TrimSpace(fmt.Sprintf("%s %s", e, strings.Join(flags, "")))
			t.Run(name, func(t *testing.T) {
				j := e.try(t, flags)
				rows = append(rows, row{e, flags, j})
				e.compare(t, j)
			})
		}
	}
	count(t, rows)
	if path := os.Getenv("DIAGNOSE_CASES"); path != "" {
		if err := os.WriteFile(path, []byte(table(rows)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// compare fails the test if the result is not the one that the entry says.
func (e *entry) compare(t *testing.T, j judgement) {
	t.Helper()
	why := strings.Join(j.why, "; ")
	switch k := e.Known; {
	case j.result == wrongProved:
		t.Errorf("wrong, and called proved: %s", why)
	case k == nil && j.result != right:
		t.Errorf("%v: %s", j.result, why)
	case k == nil:
	case j.result == right && k.Sometimes == "":
		t.Errorf("it is right now: it is no known case any more (%s)", k.Reason)
	case j.result > k.Worst:
		t.Errorf("%v, where it was %v at worst: %s", j.result, k.Worst, why)
	default:
		t.Logf("known, %v: %s (%s)", j.result, why, k.Reason)
	}
}

// count says how many results there are of each kind.
func count(t *testing.T, rows []row) {
	t.Helper()
	results := map[result]int{}
	listed := 0
	for _, r := range rows {
		results[r.j.result]++
		if r.e.Known != nil {
			listed++
		}
	}
	t.Logf("%d variants: %d right, %d weak, %d unknown, %d wrong, %d wrong and proved; %d are known cases",
		len(rows), results[right], results[weak], results[unknown], results[wrong], results[wrongProved], listed)
}

// table is docs/cases.md.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("# Cases\n\nWritten by `make cases`: the programs of `internal/testdata/cases`, each of which has shown a\nshortfall once, and what the tool makes of them.\n\n")
	b.WriteString("| Program | Way | Options | Result | Why it is known |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		reason := ""
		if r.e.Known != nil {
			reason = r.e.Known.Reason
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %v | %s |\n", r.e.File, r.e.Way, strings.Join(r.flags, " "), r.j.result, reason)
	}
	return b.String()
}
