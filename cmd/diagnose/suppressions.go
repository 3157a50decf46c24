package main

import (
	"github.com/spf13/cobra"

	"diagnose/evidence/suppress"
)

// suppressFlag is --suppressions.
type suppressFlag struct{ suppressions string }

func (f *suppressFlag) registerSuppressions(c *cobra.Command) {
	c.Flags().StringVar(&f.suppressions, "suppressions", "", "`file` of known failures, each with a reason and a last day (docs/suppressions.md)")
	must(c.MarkFlagFilename("suppressions", "toml"))
}

// readSuppressions reads the file; nil without one.
func (f *suppressFlag) readSuppressions() (*suppress.List, error) {
	if f.suppressions == "" {
		return nil, nil
	}
	list, err := suppress.Read(f.suppressions)
	if err != nil {
		return nil, usagef("--suppressions: %w", err)
	}
	return list, nil
}
