package image

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"diagnose/internal/wording"
)

// coredumpctlLimit bounds how long coredumpctl may take to hand a core over.
const coredumpctlLimit = 10 * time.Minute

// ErrNoCoredumpctl says that systemd's collector of cores is not installed.
var ErrNoCoredumpctl = errors.New("coredumpctl is not installed")

// OpenCoredumpctl opens the last core that systemd-coredump keeps of a
// process id (coredumpctl(1)). The error is ErrNoCoredumpctl where that is
// not installed, and else what coredumpctl says.
func OpenCoredumpctl(pid int, opts Options) (*Process, error) {
	program, err := exec.LookPath("coredumpctl")
	if err != nil {
		return nil, fmt.Errorf("core of process %d: %w", pid, ErrNoCoredumpctl)
	}
	name := fmt.Sprintf("coredumpctl's core of process %d", pid)
	opts.progress("fetching " + name)
	input, err := coredumpctlInput(program, name, pid, &opts)
	if err != nil {
		return nil, err
	}
	return openFrom(input, name, opts)
}

// coredumpctlInput takes the core from coredumpctl's standard output, so that
// no temporary file remains.
func coredumpctlInput(program, name string, pid int, opts *Options) (*coreInput, error) {
	ctx, cancel := context.WithTimeout(context.Background(), coredumpctlLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--no-pager", "dump", strconv.Itoa(pid))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	input, readErr := spool(name, out, opts)
	out.Close() // ends the program if it still writes
	waitErr := cmd.Wait()
	// ErrWaitDelay: it succeeded, but a child of it keeps its standard error open.
	if readErr == nil && (waitErr == nil || errors.Is(waitErr, exec.ErrWaitDelay)) {
		return input, nil
	}
	if input != nil {
		input.close()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s: coredumpctl had not finished after %v", name, coredumpctlLimit)
	}
	// Its own errors come with an exit status; if we stop reading early,
	// SIGPIPE kills it.
	var status *exec.ExitError
	if said := lastLine(complaint.String()); errors.As(waitErr, &status) && status.Exited() && said != "" {
		return nil, fmt.Errorf("%s: coredumpctl: %s", name, said)
	}
	return nil, fmt.Errorf("%s: %w", name, cmp.Or(readErr, waitErr))
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return wording.Name(lines[len(lines)-1])
}
