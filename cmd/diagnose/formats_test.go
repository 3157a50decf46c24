package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/internal/crashtest"
)

// Reports of real cores in the formats for browsers and for code scanning: SARIF is checked against
// the published schema, and --output replaces a file.
func TestFormatsOfCores(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("../../reports/testdata/sarif/sarif-2.1.0-rtm.5.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"null_read", "cxx_throw_runtime", "stack_overflow", "stack_smashing", "deadlock_cycle", "threads_work"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := crashtest.Named(t, name)
			core := f.Crash(t, f.AllVariants()[0]).Core
			o := diagnose(t, nil, "crash", "--core", core, "--format", "sarif")
			if o.status != exitOK {
				t.Fatalf("status %d: %s", o.status, o.stderr)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(o.stdout))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%v in %s", err, o.stdout)
			}
			for _, want := range []string{`"ruleId"`, `"diagnoseStack/v1"`, `"startLine"`, filepath.Base(f.Source)} {
				if !strings.Contains(o.stdout, want) {
					t.Errorf("%s is missing in %s", want, o.stdout)
				}
			}
			page := filepath.Join(t.TempDir(), "report.html")
			if o := diagnose(t, nil, "crash", "--core", core, "--format", "html", "--output", page); o.status != exitOK || o.stdout != "" {
				t.Fatalf("status %d: %s%s", o.status, o.stdout, o.stderr)
			}
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(text, []byte("<!DOCTYPE html>")) || !bytes.HasSuffix(bytes.TrimSpace(text), []byte("</html>")) || !bytes.Contains(text, []byte(`<tr class="marked" id="code-1-`)) {
				t.Errorf("no page with a marked line: %s", text)
			}
		})
	}
}
