package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
)

// Every type and every member says what it is.
func TestEverythingIsDescribed(t *testing.T) {
	docs, err := load("diagnose/evidence", "diagnose/reports")
	if err != nil {
		t.Fatal(err)
	}
	s := schema(docs)
	types := map[string]*jsonschema.Schema{"Document": s}
	for name, d := range s.Definitions {
		types[name] = d
	}
	if len(types) < 25 {
		t.Errorf("only %d types", len(types))
	}
	for name, d := range types {
		if d.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for p := d.Properties.Oldest(); p != nil; p = p.Next() {
			if p.Value.Description == "" {
				t.Errorf("%s.%s has no description", name, p.Key)
			}
		}
	}
}

// The schema in the repository must be the one that the types give.
func TestSchemaIsCurrent(t *testing.T) {
	docs, err := load("diagnose/evidence", "diagnose/reports")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(schema(docs), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../reports/schema/case-1.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.TrimSpace(string(want)) {
		t.Error("reports/schema/case-1.json is not what the types give: run make generate")
	}
}
