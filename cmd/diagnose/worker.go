package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"diagnose/fleet/work"
	"diagnose/reports"
)

type workerFlags struct {
	engineFlags
	jobs       int
	dir        string
	idle       days
	unconfined bool
}

func newWorker() *cobra.Command {
	f := &workerFlags{}
	c := &cobra.Command{
		Use:   "worker",
		Short: "Diagnose failures that nights on other hosts put into an engine",
		Long: `worker takes the failures that 'diagnose nightly --engine' puts into a queue, those that
this host can diagnose: the version of diagnose, the architecture, the processor's
features, and the executables and libraries that a recording does not bring along must
be those that are needed. It works until it is interrupted; then it gives unfinished
failures back to the queue. If it is killed, others diagnose them.

Each failure is diagnosed as by 'diagnose nightly': in a process of its own, with its
budget of time and of memory. A replay executes what the recording says. So it runs as
by 'diagnose isolated': in a root of its own that has the recording's objects, without
network and without rights. A core is read without network, and nothing of it is
executed. A worker of root's gives each of them a user of its own, and needs a --dir
that others can reach. Where a host does not allow this, recordings are not replayed,
only their cores are read, and the summary of the night says so.
` + engineHelp + `
Exit status:

      0  it was idle for as long as --idle says
      1  the tool itself failed
      2  the command line is wrong
      3  the engine does not answer, or refuses this user
    130  it was interrupted`,
		Example: `  diagnose worker --engine nats://queue.example.org:4222 --engine-credentials /etc/diagnose/worker.creds
  diagnose worker --engine tls://queue.example.org:4222 --team server --jobs 4
  diagnose worker --idle 10m`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	f.engineFlags.register(c, "engine", engineURLUsage)
	flags.IntVar(&f.jobs, "jobs", max(1, runtime.NumCPU()/2), "how `many` failures are diagnosed at once")
	flags.StringVar(&f.dir, "dir", os.TempDir(), "`directory` for the files of failures")
	flags.Var(&f.idle, "idle", "end when there was nothing to do for this `time`, as in 10m")
	flags.BoolVar(&f.unconfined, "unconfined", false, "let replays have the network and the rights of this user")
	must(c.MarkFlagDirname("dir"))
	for _, name := range []string{"jobs", "idle"} {
		complete(c, name, cobra.NoFileCompletions)
	}
	return c
}

func (f *workerFlags) run(c *cobra.Command) error {
	switch {
	case !f.named():
		return usagef("name the engine with --engine or by %s", engineVariable)
	case f.jobs < 1:
		return usagef("--jobs takes a whole number from 1 on, not %d", f.jobs)
	case f.idle < 0:
		return usagef("--idle takes a time, as in 10m")
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	e, err := f.connect(c.Context())
	if err != nil {
		return err
	}
	defer e.Close()
	os.Unsetenv(engineVariable) // it may have a password, and analyses inherit the environment
	shop, err := work.OpenWorkshop(f.dir)
	if err != nil {
		return usagef("--dir: %w", err)
	}
	defer shop.Close()
	o := work.WorkerOptions{Version: version(), Command: []string{exe}, Jobs: f.jobs, Dir: shop.Dir, Idle: time.Duration(f.idle), Progress: tellStep}
	if !f.unconfined {
		objects, err := replayObjects(c.Context())
		if err != nil {
			return err
		}
		o.Confine = work.NewIsolation(exe, objects...)
	}
	if err := work.Work(c.Context(), e, o); err != nil {
		return err
	}
	return c.Context().Err()
}

// tellStep is a line in the worker's log.
func tellStep(s work.Step) {
	text := fmt.Sprintf("%s %s: ", s.Job.Entry[:min(shortID, len(s.Job.Entry))], s.Job.Program)
	switch r := s.Result; {
	case s.Err != nil:
		text += "given back: " + s.Err.Error()
	case r == nil:
		text += "begun"
	case s.Dropped:
		text += "done, and dropped: there was a result"
	case r.Report == nil && r.Tree == "":
		text += "not diagnosed: " + r.Reason
	default:
		text += fmt.Sprintf("diagnosed in %v", r.Took.Round(10*time.Millisecond))
	}
	fmt.Fprintln(os.Stderr, "diagnose:", reports.Message(text))
}
