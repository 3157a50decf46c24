package main

import (
	"os"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"diagnose/internal/schema"
)

// Every type and every member says what it is.
func TestEverythingIsDescribed(t *testing.T) {
	docs, err := schema.Load("diagnose/evidence", "diagnose/reports")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*jsonschema.Schema{}
	for document, d := range documents {
		s := docs.Schema(d)
		types["Document of "+document] = s
		for name, d := range s.Definitions {
			types[name] = d
		}
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

// The schemas in the repository must be those that the types give.
func TestSchemaIsCurrent(t *testing.T) {
	docs, err := schema.Load("diagnose/evidence", "diagnose/reports")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range documents {
		got, err := docs.Text(d)
		if err != nil {
			t.Fatal(err)
		}
		major, _, _ := strings.Cut(d.Version, ".")
		path := "reports/schema/" + name + "-" + major + ".json"
		want, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the types give: run make generate", path)
		}
	}
}
