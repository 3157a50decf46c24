package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/internal/privatefile"
	"diagnose/reports"
)

// nightFormats are the forms of a summary.
var nightFormats = []string{string(reports.Text), string(reports.JSON), string(reports.HTML)}

func (f *nightlyFlags) registerNightFormat(c *cobra.Command) {
	c.Flags().StringVarP(&f.format, "format", "f", string(reports.Text), "`form` of the output: text, json, html")
	choices(c, "format", nightFormats...)
}

// hand delivers the summary and then notes that it was delivered.
func (f *nightlyFlags) hand(c *cobra.Command, store *corpus.Corpus, s *nightly.Summary) error {
	if f.out != "" {
		if err := writeNight(c.Context(), store, s, f.out, f.redaction); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	err := writeSummary(c.OutOrStdout(), s, f.format)
	if err == nil && !f.dryRun {
		err = s.Told(c.Context(), store)
	}
	if err == nil && s.Alarming() {
		err = &newCauseError{}
	}
	return err
}

func writeSummary(w io.Writer, s *nightly.Summary, format string) error {
	switch reports.Format(format) {
	case reports.JSON:
		return reports.WriteJSON(w, s)
	case reports.HTML: // the page may be moved anywhere: it links to no file
		return s.WriteHTML(w, nightly.PageOptions{})
	}
	return s.WriteText(w)
}

// causesName is the directory in --out that holds a report for each cause.
const causesName = "causes"

func writeNight(ctx context.Context, store *corpus.Corpus, s *nightly.Summary, dir string, redact *reports.Redaction) error {
	page := nightly.PageOptions{Reports: map[string]string{}, Missing: map[string]string{}}
	for _, g := range slices.Concat(s.New, s.Back, s.Known, s.Fixed) {
		forms, err := causeForms(ctx, store, &g, redact)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// A report that cannot be shown must not keep the others from being shown.
			page.Missing[g.Digest] = "its report cannot be shown: " + redact.Text(err.Error())
			fmt.Fprintln(os.Stderr, "diagnose:", reports.Clean(fmt.Sprintf("the report of cluster %s cannot be shown: %s", g.Digest, redact.Text(err.Error()))))
			continue
		}
		for suffix, text := range forms {
			if err := privatefile.Write(filepath.Join(dir, causesName, g.Digest+suffix), text); err != nil {
				return err
			}
		}
		page.Reports[g.Digest] = path.Join(causesName, g.Digest+".html")
	}
	var text, doc, html bytes.Buffer
	if err := errors.Join(s.WriteText(&text), reports.WriteJSON(&doc, s), s.WriteHTML(&html, page)); err != nil {
		return err
	}
	for name, form := range map[string]*bytes.Buffer{"summary.txt": &text, "summary.json": &doc, "summary.html": &html} {
		if err := privatefile.Write(filepath.Join(dir, name), form.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// causeForms returns the report of a cluster's example in each form, by the extension of its file's
// name.
func causeForms(ctx context.Context, store *corpus.Corpus, g *nightly.Group, redact *reports.Redaction) (map[string][]byte, error) {
	text, err := store.Report(ctx, g.Example)
	if err != nil {
		return nil, err
	}
	doc, err := readDocument(text)
	if err != nil {
		return nil, fmt.Errorf("the report of %s: %w", g.Example, err)
	}
	forms := map[string][]byte{}
	for suffix, format := range map[string]reports.Format{".json": reports.JSON, ".md": reports.Markdown, ".html": reports.HTML} {
		var form bytes.Buffer
		if err := reports.Write(&form, doc.Case, reports.Options{Format: format, Redact: redact, Version: doc.Tool.Version}); err != nil {
			return nil, err
		}
		forms[suffix] = form.Bytes()
	}
	return forms, nil
}
