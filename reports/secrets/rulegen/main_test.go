package main

import (
	"bytes"
	"os"
	"testing"
)

// The package's rules are made from the file next to it.
func TestGenerated(t *testing.T) {
	want, err := generate("../gitleaks.toml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../gitleaks_rules.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("gitleaks_rules.go is not made from gitleaks.toml: go generate ./reports/secrets")
	}
}
