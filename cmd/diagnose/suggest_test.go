package main

import (
	"slices"
	"testing"
)

func TestSimilar(t *testing.T) {
	words := []string{"crash", "trace", "html", "json", "text", "zsh", "recording", "record", "random", "lazy", "on-error"}
	for typed, want := range map[string][]string{
		"crsh": {"crash"}, "CRASH": {"crash"}, "crashes": {"crash"}, "zs": {"zsh"}, "rnadom": {"random"}, "layz": {"lazy"}, "onerror": {"on-error"}, "rec": {"recording", "record"}, "tarce": {"trace"},
		"yaml": nil, "tracker": nil, "xml": nil, "x": nil, "": nil, "ht": nil, "toml": nil, "test": {"text"},
	} {
		if got := similar(typed, words); !slices.Equal(got, want) {
			t.Errorf("%q is like %q, want %q", typed, got, want)
		}
	}
}
