package image

import (
	"bufio"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// inferior is a process of three threads that answers each line it is sent.
type inferior struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func (i *inferior) pid() string { return strconv.Itoa(i.cmd.Process.Pid) }

const waitingSource = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/prctl.h>
int marker = 0x5eed;
static pthread_barrier_t barrier;
static void *waits(void *arg)
{
	prctl(PR_SET_NAME, "waiter");
	pthread_barrier_wait(&barrier);
	sleep(1000);
	return arg;
}
int main(void)
{
	char line[100];
	pthread_t t[2];
	alarm(300);
	pthread_barrier_init(&barrier, 0, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, waits, 0);
	pthread_barrier_wait(&barrier);
	do {
		puts("here");
		fflush(stdout);
	} while (fgets(line, sizeof line, stdin));
	return 0;
}
`

func startWaiting(t testing.TB) *inferior {
	t.Helper()
	exe := compileText(t, "waiting.c", waitingSource, "-pthread")
	return startInferior(t, exe)
}

func startInferior(t testing.TB, exe string) *inferior {
	t.Helper()
	cmd := exec.Command(exe)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	i := &inferior{cmd, in, bufio.NewReader(out)}
	i.expect(t, "here")
	return i
}

func (i *inferior) expect(t testing.TB, want string) {
	t.Helper()
	line, err := i.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("the process said %q (%v), want %q", line, err, want)
	}
}

// answers fails the test if the process does not run.
func (i *inferior) answers(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(i.in, "\n"); err != nil {
		t.Fatal(err)
	}
	i.expect(t, "here")
}
