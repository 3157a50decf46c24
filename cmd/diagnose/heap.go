package main

import (
	"io"

	"github.com/spf13/cobra"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/reports"
)

// heapFlags are the flags of heap.
type heapFlags struct {
	commonFlags
	sites int
	json  bool
}

func newHeap() *cobra.Command {
	f := &heapFlags{}
	c := &cobra.Command{
		Use:   "heap (--core FILE | --pid N | --coredumpctl N)",
		Short: "Sum up and check the heap of a process that ran with the agent",
		Long: `heap reads a core file, or stops a live process and lets it go on afterwards,
and says who allocated what is on its heap: bytes and objects that are live and
that were freed and are kept in quarantine, by allocation site; which objects
are damaged, by whom they were allocated and freed; and what the agent found
while the program ran.

The process must have run with the agent: 'diagnose run -- PROGRAM ARGUMENTS',
or LD_PRELOAD=$(diagnose agent path).
` + environmentHelp + exitHelp,
		Example: `  diagnose heap --core core.123
  diagnose heap --pid 4711 --sites 5
  diagnose heap --core core.zst --json`,
		Args:              noStrayFile,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.registerInput(c)
	c.Flags().IntVar(&f.sites, "sites", 20, "list so many allocation sites, those with most live bytes; 0 lists all (`number`)")
	c.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
	f.registerOutput(c)
	complete(c, "sites", cobra.NoFileCompletions)
	return c
}

func (f *heapFlags) run(c *cobra.Command) error {
	if f.json {
		if c.Flags().Changed("format") && f.format != string(reports.JSON) {
			return usagef("--json and --format %s exclude each other", f.format)
		}
		f.format = string(reports.JSON)
	}
	if err := f.check(c, atLeast{"sites", f.sites, 0}); err != nil {
		return err
	}
	result, err := analyse(&f.commonFlags, func(req driver.Request) (*evidence.Heap, error) {
		return driver.Heap(c.Context(), req, driver.HeapOptions{Sites: f.sites})
	})
	if err != nil {
		return err
	}
	return f.emit(c, result.Timings, func(w io.Writer, opts reports.Options) error { return reports.WriteHeap(w, result, opts) })
}
