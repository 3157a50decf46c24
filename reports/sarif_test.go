package reports

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/evidence"
	"diagnose/evidence/signature"
)

func sarifSchemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("testdata/sarif/sarif-2.1.0-rtm.5.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validateSARIF(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// readSARIF validates a report and reads it back.
func readSARIF(t *testing.T, c *evidence.Case, opts Options) *sarifLog {
	t.Helper()
	opts.Format = SARIF
	text := render(t, c, opts)
	if err := validateSARIF(t, sarifSchemaOf(t), text); err != nil {
		t.Errorf("the published schema refuses the report: %v", err)
	}
	var log sarifLog
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	return &log
}

// digests matches digests. The tests of package signature keep them stable.
var digests = regexp.MustCompile(`"[0-9a-f]{32}"`)

func TestSARIFGolden(t *testing.T) {
	for file, c := range map[string]*evidence.Case{"sarif/sample.sarif": sample(), "sarif/cause.sarif": withSources(diagnosed(raceCause(), overflowCause()))} {
		readSARIF(t, c, Options{})
		text := render(t, c, Options{Format: SARIF, Version: "1.2", SourceRoot: "/src"})
		compareGolden(t, file, digests.ReplaceAllString(text, `"(a signature)"`))
	}
}

func TestSARIFOfAHeap(t *testing.T) {
	text := renderHeap(t, sampleHeap(), Options{Format: SARIF})
	if err := validateSARIF(t, sarifSchemaOf(t), text); err != nil {
		t.Error(err)
	}
	if !strings.Contains(text, `"ruleId": "double-free"`) {
		t.Errorf("the double free is no result: %s", text)
	}
}

// The schema refuses what it should.
func TestSARIFSchemaRefuses(t *testing.T) {
	schema, text := sarifSchemaOf(t), render(t, diagnosed(raceCause()), Options{Format: SARIF})
	for _, x := range [][2]string{{`"level": "error"`, `"level": "severe"`}, {`"startLine": 31`, `"startLine": 0`},
		{`"uri": "file:///src/bank.c"`, `"uri": "file:// src"`}, {`"ruleIndex": 0`, `"ruleIndex": "0"`}, {`"executionOrder": 1`, `"execution_order": 1`}} {
		changed := strings.Replace(text, x[0], x[1], 1)
		if changed == text {
			t.Errorf("there is no %s in %s", x[0], text)
		}
		if validateSARIF(t, schema, changed) == nil {
			t.Errorf("the schema accepts %s", x[1])
		}
	}
}

// Every thread of an interleaving has one flow, and the order of all is in time.
func TestSARIFThreadFlows(t *testing.T) {
	r := readSARIF(t, diagnosed(raceCause()), Options{}).Runs[0].Results[0]
	if len(r.CodeFlows) != 2 {
		t.Fatalf("%d code flows, want those of the failing and of the passing run", len(r.CodeFlows))
	}
	type flow struct {
		ID    string
		Order []int
	}
	var got []flow
	for _, run := range r.CodeFlows {
		for _, f := range run.ThreadFlows {
			x := flow{ID: f.ID}
			for _, l := range f.Locations {
				x.Order = append(x.Order, l.Order)
			}
			got = append(got, x)
		}
	}
	want := []flow{{"thread 2", []int{1, 3}}, {"thread 3", []int{2}}, {"thread 2", []int{1, 2}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if state := r.CodeFlows[0].ThreadFlows[1].Locations[0].State["balance"].Text; state != "20" {
		t.Errorf("balance is %q after the second access, want 20", state)
	}
}

// The rule's id is the cause's kind. The fingerprints are the signatures of the failure and its
// cause, whether secrets are shown or not.
func TestSARIFIdentity(t *testing.T) {
	c := diagnosed(raceCause(), overflowCause())
	s := signature.Of(c)
	if s.Cause == "" {
		t.Fatal("the case has no signature of its cause")
	}
	var prints []map[string]string
	for _, show := range []bool{false, true} {
		run := readSARIF(t, c, Options{ShowSecrets: show}).Runs[0]
		for _, r := range run.Results {
			if got := run.Tool.Driver.Rules[r.RuleIndex].ID; got != r.RuleID {
				t.Errorf("rule %d is %s, the result's %s", r.RuleIndex, got, r.RuleID)
			}
		}
		first, second := run.Results[0], run.Results[1]
		if first.RuleID != string(evidence.CauseAtomicity) || second.RuleID != string(evidence.CauseHeapOverflow) {
			t.Errorf("rules %s and %s", first.RuleID, second.RuleID)
		}
		if first.Level != "error" || second.Level != "note" {
			t.Errorf("levels %s and %s, want error and, of a less likely cause, note", first.Level, second.Level)
		}
		prints = append(prints, first.Fingerprints)
		if second.Fingerprints[causeFingerprint] == first.Fingerprints[causeFingerprint] {
			t.Error("two causes have one fingerprint")
		}
	}
	want := map[string]string{stackFingerprint: s.Stack, causeFingerprint: s.Cause}
	for _, got := range prints {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// Without a cause the failure and the findings are the results.
func TestSARIFWithoutCause(t *testing.T) {
	var rules []string
	for _, r := range readSARIF(t, sample(), Options{}).Runs[0].Results {
		rules = append(rules, r.RuleID)
		if r.Fingerprints[causeFingerprint] != "" || r.Fingerprints[stackFingerprint] == "" {
			t.Errorf("%s: fingerprints %v", r.RuleID, r.Fingerprints)
		}
	}
	if want := []string{"null-pointer", "deadlock", "heap-overflow", "double-free", "stack-smashing"}; !slices.Equal(rules, want) {
		t.Errorf("results %v, want %v", rules, want)
	}
}

func TestSARIFPaths(t *testing.T) {
	for _, x := range []struct{ root, file, uri, base string }{
		{"/src", "/src/a b/c#1.c", "a%20b/c%231.c", sarifRoot},
		{"/src", "/srcs/c.c", "file:///srcs/c.c", ""},
		{"/src", "/src/../etc/c.c", "file:///etc/c.c", ""},
		{"", "./nptl/x.c", "nptl/x.c", ""},
		{"", "c:evil.c", "./c:evil.c", ""},
		{"", "javascript:alert(1)//x.c", "./javascript:alert%281%29/x.c", ""},
	} {
		b := &sarifBuilder{root: x.root}
		got := b.artifact(x.file)
		if got.URIBaseID != x.base || strings.NewReplacer("(", "%28", ")", "%29").Replace(got.URI) != x.uri {
			t.Errorf("%s below %q: %+v, want %s of %q", x.file, x.root, got, x.uri, x.base)
		}
	}
}

// Columns count code points, and a line's text is the file's own.
func TestSARIFRegions(t *testing.T) {
	b := &sarifBuilder{c: &evidence.Case{Sources: []evidence.Source{{File: "/a.c", Lines: []evidence.SourceLine{{Number: 3, Text: "\t\u00e9\x1b = f(x);"}}}}}}
	p := b.place(&evidence.Site{File: "/a.c", Line: 3, Column: 6}, "").Physical // the equals sign is byte 6
	if p.Region.StartLine != 3 || p.Region.StartColumn != 5 || p.Region.Snippet != nil {
		t.Errorf("region %+v", p.Region)
	}
	if want := "\t\u00e9\\x1b = f(x);"; p.Context == nil || p.Context.Snippet.Text != want {
		t.Errorf("context %+v, want %q", p.Context, want)
	}
	p = b.place(&evidence.Site{File: "/a.c", Line: 4, Column: 6}, "").Physical
	if p.Region.StartColumn != 6 || p.Context != nil {
		t.Errorf("of a line whose text is not known: %+v, %+v", p.Region, p.Context)
	}
}

// A message of the target can be neither a placeholder nor a link.
func TestSARIFMessages(t *testing.T) {
	for in, want := range map[string]string{
		"main::{closure#0} {0}":      "main::{{closure#0}} {{0}}",
		"[here](http://evil) [1](2)": "[here] (http://evil) [1] (2)",
		"a\x1b[31mb":                 `a\x1b[31mb`,
		"accounts[0].balance":        "accounts[0].balance",
	} {
		if got := sarifText(in).Text; got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// withSources adds the text of the lines that the causes name.
func withSources(c *evidence.Case) *evidence.Case {
	var lines []evidence.SourceLine
	for n := 24; n <= 40; n++ {
		lines = append(lines, evidence.SourceLine{Number: n, Text: fmt.Sprintf("\tline %d of the bank;", n)})
	}
	c.Sources = []evidence.Source{{File: "/src/bank.c", Lines: lines},
		{File: "/src/names.c", Stale: true, Lines: []evidence.SourceLine{{Number: 11, Text: "\tint i = 0;"}, {Number: 12, Text: "\tto[i] = from[i];"}}}}
	return c
}
