package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

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
