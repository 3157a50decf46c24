// Command schemagen writes the JSON Schemas of the documents that reports writes.
package main

import (
	"flag"
	"fmt"
	"os"

	"diagnose/internal/schema"
	"diagnose/reports"
)

func main() {
	out := flag.String("out", "", "file to write; standard output if empty")
	name := flag.String("document", "case", "document to describe: case or heap")
	flag.Parse()
	if err := run(*name, *out); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

// documents are those that reports writes.
var documents = map[string]schema.Document{
	"case": {Value: &reports.Document{}, Name: "case", Title: "report", Version: reports.SchemaVersion},
	"heap": {Value: &reports.HeapDocument{}, Name: "heap", Title: "summary of a heap", Version: reports.HeapSchemaVersion},
}

func run(name, out string) error {
	d, ok := documents[name]
	if !ok {
		return fmt.Errorf("no document %q", name)
	}
	docs, err := schema.Load("diagnose/evidence", "diagnose/reports")
	if err != nil {
		return err
	}
	text, err := docs.Text(d)
	if err != nil {
		return err
	}
	if out == "" {
		_, err = os.Stdout.Write(text)
		return err
	}
	return os.WriteFile(out, text, 0o644)
}
