package signalsets

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const text = "Name:\ta\\nSigPnd:\t9\nThreads:\t1\nSigQ:\t3/15000\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000000200\n" +
	"SigBlk:\t8000000000000000\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000400\nCapInh:\t0000000000000000\n"

func TestParse(t *testing.T) {
	want := Sets{
		Pending: Of(unix.SIGHUP), SharedPending: Of(unix.SIGUSR1), Blocked: 1 << 63,
		Ignored: Of(unix.SIGPIPE), Caught: Of(unix.SIGSEGV),
	}
	if got, err := Parse([]byte(text)); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if !want.Caught.Has(unix.SIGSEGV) || want.Caught.Has(unix.SIGBUS) || !want.Blocked.Has(64) {
		t.Errorf("%+v has other signals", want)
	}
	for _, name := range []string{"\nSigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"} {
		missing := strings.Replace(text, name, name[:len(name)-1], 1)
		damaged := strings.Replace(text, name+":\t", name+":\tx", 1)
		for _, text := range []string{missing, damaged} {
			if got, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) || got != (Sets{}) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
}

func TestRead(t *testing.T) {
	signal.Ignore(unix.SIGUSR2)
	defer signal.Reset(unix.SIGUSR2)
	s, err := Read(os.Getpid())
	if err != nil || !s.Ignored.Has(unix.SIGUSR2) || !s.Caught.Has(unix.SIGSEGV) || s.Caught.Has(unix.SIGUSR2) {
		t.Errorf("%+v, %v", s, err)
	}
	// PID_MAX_LIMIT of linux/threads.h is 1<<22.
	if _, err := Read(1 << 23); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that there is no such thread", err)
	}
}
