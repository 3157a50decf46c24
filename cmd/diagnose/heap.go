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
		Short: "Sum up and check the heap of a process",
		Long: `heap reads a core file, or stops a live process and resumes it afterwards,
and lists its heap.

Of a process that ran with the agent ('diagnose run -- PROGRAM ARGUMENTS', or
LD_PRELOAD=$(diagnose agent path)) it lists the allocation sites: bytes and objects that
are live, and those that were freed and are kept in quarantine; which objects are damaged,
and the stacks that allocated and freed them; and what the agent found while the program ran.

Of other processes it reads the heap of glibc's malloc: live objects by size and, as far as
debug information and virtual functions tell, by type; the largest objects and what points
to them; free memory; and the objects that no pointer leads to, which are leaks.
` + environmentHelp + exitHelp,
		Example: `  diagnose heap --core core.123
  diagnose heap --pid 4711 --sites 5
  diagnose heap --core core.zst --json`,
		Args:              noStrayFile,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.reportHeap(c) },
	}
	f.registerInput(c)
	c.Flags().IntVar(&f.sites, "sites", 20, "list this `number` of allocation sites, sizes, types and leaks, those with the most bytes; 0 lists all")
	c.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
	f.registerOutput(c)
	complete(c, "sites", cobra.NoFileCompletions)
	return c
}

func (f *heapFlags) reportHeap(c *cobra.Command) error {
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
