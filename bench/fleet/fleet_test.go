package main

import (
	"errors"
	"os"
	"testing"
	"time"
)

// The test binary is also the server and the workers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == roleServer || os.Args[1] == roleWorker) {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every failure has one result, though workers and the server are killed and the network is cut.
func TestFaults(t *testing.T) {
	o := faultOptions{failures: 100, poison: 1, workers: 3, kills: 10, restarts: 1, cut: 4 * time.Second, job: 50 * time.Millisecond, claim: time.Second}
	found, err := faults(t.Context(), o)
	var no *unsupportedError
	if errors.As(err, &no) {
		t.Skip("not supported here: ", no)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := found.print(t.Output()); err != nil {
		t.Error(err)
	}
	if found.killed != o.kills || found.restarted != o.restarts || found.wasCut < o.cut {
		t.Errorf("the faults did not happen: %+v", found)
	}
}
