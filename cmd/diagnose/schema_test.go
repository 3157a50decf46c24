package main

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/corpus/nightly"
	"diagnose/internal/crashtest"
	"diagnose/internal/schema"
	"diagnose/replay/record"
	"diagnose/reports/tracker"
)

//go:generate go test -run TestSchemas -update .

var updateSchemas = flag.Bool("update", false, "write the schemas again")

// text is the schema of record.Text.
var text = &generator.Schema{
	Description: "A string of the program's: of bytes that are no UTF-8 an object with base64",
	OneOf: []*generator.Schema{{Type: "string"}, {Type: "object", Required: []string{"base64"}, AdditionalProperties: generator.FalseSchema,
		Properties: generator.NewProperties()}},
}

var documents = []schema.Document{
	{Value: &replayReport{}, Name: "replay", Title: "report of a replay", Version: replayVersion},
	{Value: &shown{}, Name: "recording", Title: "description of a recording", Version: shownVersion},
	{Value: &shownEvent{}, Name: "event", Title: "event of a recording, one a line", Version: shownVersion},
	{Value: &shownTrace{}, Name: "trace", Title: "trace", Version: traceVersion},
	{Value: &shownProbe{}, Name: "probe", Title: "answer to a probe", Version: probeVersion},
	{Value: &shownAnswer{}, Name: "ask", Title: "answer to a question about a recording", Version: askVersion},
	{Value: &shownCorpus{}, Name: "corpus", Title: "list of a corpus's failures or clusters", Version: corpusVersion},
	{Value: &nightly.Summary{}, Name: "nightly", Title: "summary of a night", Version: nightly.SummaryVersion},
	{Value: &tracker.Alert{}, Name: "alert", Title: "alert to a webhook", Version: tracker.AlertVersion},
}

// schemaPath returns the file of a document's schema, whose name has the first number of the
// version.
func schemaPath(name string) string {
	i := slices.IndexFunc(documents, func(d schema.Document) bool { return d.Name == name })
	major, _, _ := strings.Cut(documents[i].Version, ".")
	return filepath.Join("../../reports/schema", name+"-"+major+".json")
}

// The schemas in the repository are those that the types give. They describe every member.
func TestSchemas(t *testing.T) {
	text.OneOf[1].Properties.Set("base64", &generator.Schema{Type: "string"})
	docs, err := schema.Load("diagnose/evidence", "diagnose/replay/record", "diagnose/replay/record/eventlog", "diagnose/replay", "diagnose/replay/verify", "diagnose/replay/watchpoint", "diagnose/replay/learn", "diagnose/corpus", "diagnose/corpus/nightly", "diagnose/reports/tracker", "diagnose/probe", "diagnose/ask", "diagnose/cmd/diagnose")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		d.Forms = map[reflect.Type]*generator.Schema{reflect.TypeFor[record.Text](): text}
		got, err := docs.Text(d)
		if err != nil {
			t.Fatal(err)
		}
		if *updateSchemas {
			if err := os.WriteFile(schemaPath(d.Name), got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(schemaPath(d.Name)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the types give: run make generate (%v)", schemaPath(d.Name), err)
		}
		s := docs.Schema(d)
		s.Definitions["Document of "+d.Name] = s
		for name, of := range s.Definitions {
			for p := of.Properties.Oldest(); p != nil; p = p.Next() {
				if p.Value.Description == "" && p.Value.Ref == "" {
					t.Errorf("%s: %s.%s has no description", d.Name, name, p.Key)
				}
			}
		}
	}
}

// The output of the commands fits the schemas.
func TestOutputsFitTheSchemas(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := traceable(t)
	for name, args := range map[string][]string{
		"replay":    {"replay", dir, "--verify", "--format", "json"},
		"recording": {"recording", "show", dir, "--format", "json"},
		"event":     {"recording", "show", dir, "--events", "--format", "json"},
		"trace":     {"trace", "--recording", dir, "--watch", "guarded", "--watch", "cfg.workers[1]", "--format", "json"},
		"probe":     {"probe", "--recording", dir, "--on-call", "add", "--on-return", "add", "--on-syscall", "write", "--stack", "--verify", "--format", "json"},
	} {
		s, err := jsonschema.NewCompiler().Compile(schemaPath(name))
		if err != nil {
			t.Fatal(err)
		}
		got := diagnose(t, nil, args...)
		if got.status != exitOK {
			t.Fatalf("%s: status %d: %s", name, got.status, got.stderr)
		}
		documents := []string{got.stdout}
		if name == "event" {
			documents = strings.SplitAfter(strings.TrimSpace(got.stdout), "\n")
		}
		for _, d := range documents {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(d))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := s.Validate(value); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, d)
			}
			// A schema that accepts everything would prove nothing.
			if name != "event" && s.Validate(map[string]any{"version": "1.0"}) == nil {
				t.Errorf("%s: the schema asks for nothing", name)
			}
		}
	}
}
