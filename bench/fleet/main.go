package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say speed or faults")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	switch args[0] {
	case roleServer: // of this program's own
		return serve(ctx, args[1], args[2])
	case roleWorker:
		return labour(ctx, args[1], args[2], args[3])
	case "speed":
		o := speedOptions{}
		flags.IntVar(&o.each, "each", 60, "failures for each worker")
		flags.DurationVar(&o.job, "job", 400*time.Millisecond, "how long a failure waits, or computes")
		kinds := flags.String("kinds", "wait,burn", "what failures do")
		flags.Parse(args[1:])
		o.kinds = strings.Split(*kinds, ",")
		return speed(ctx, o)
	case "faults":
		o := faultOptions{}
		flags.IntVar(&o.failures, "failures", 10_000, "failures")
		flags.IntVar(&o.poison, "poison", 3, "further failures that kill their workers")
		flags.IntVar(&o.workers, "workers", 8, "workers")
		flags.IntVar(&o.kills, "kills", 200, "workers that are killed at random")
		flags.IntVar(&o.restarts, "restarts", 2, "times that the server is killed and started again")
		flags.DurationVar(&o.cut, "cut", 30*time.Second, "how long the network is cut")
		flags.DurationVar(&o.job, "job", 200*time.Millisecond, "how long a failure waits")
		flags.DurationVar(&o.claim, "claim", 5*time.Second, "how long a claim holds")
		flags.Parse(args[1:])
		found, err := faults(ctx, o)
		if err != nil {
			return err
		}
		return found.print(os.Stdout)
	}
	return fmt.Errorf("%q is neither speed nor faults", args[0])
}
