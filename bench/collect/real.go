package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// crasher forks children that crash, at a rate for a time, and prints how many there were and how many
// the kernel began to dump.
const crasher = `
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv)
{
	double rate = atof(argv[1]), length = atof(argv[2]), begin = now();
	int made = 0, ended = 0, dumped = 0, status;
	while (now() - begin < length) {
		if (made < (now() - begin) * rate && made - ended < 2000) {
			made++;
			if (fork() == 0)
				abort();
		} else
			usleep(200);
		while (waitpid(-1, &status, WNOHANG) > 0) {
			ended++;
			dumped += !!WCOREDUMP(status);
		}
	}
	while (wait(&status) > 0)
		dumped += !!WCOREDUMP(status);
	printf("%d %d %.1f\n", made, dumped, now() - begin);
}
`

// real has the kernel hand over the cores of a storm. It sets core_pattern of this machine meanwhile.
func (s *settings) real(rate int) error {
	dir, err := os.MkdirTemp("/tmp", "dc")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source, exe, spool := filepath.Join(dir, "crasher.c"), filepath.Join(dir, "crasher"), filepath.Join(dir, "spool")
	if err := os.WriteFile(source, []byte(crasher), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "c"), fmt.Appendf(nil, "spool = %q\n[limits]\nfree_mib = 0\n", spool), 0o600); err != nil {
		return err
	}
	for _, cmd := range [][]string{{"gcc", "-O2", "-Wl,--build-id", "-o", exe, source}, {"cp", s.diagnose, filepath.Join(dir, "d")}} {
		if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	restore, err := setPattern(fmt.Sprintf("|%s/d collect handle --config %s/c %%P %%I %%u %%g %%s %%t", dir, dir))
	if err != nil {
		return err
	}
	defer restore()
	before := busy()
	out, err := exec.Command(exe, fmt.Sprint(rate), fmt.Sprint(s.storm.Seconds())).Output()
	if err != nil {
		return err
	}
	used := busy() - before
	restore()
	var made, dumped int
	var took float64
	if _, err := fmt.Sscan(string(out), &made, &dumped, &took); err != nil {
		return err
	}
	status, err := exec.Command(s.diagnose, "collect", "status", "--config", filepath.Join(dir, "c")).Output()
	if err != nil {
		return err
	}
	_, counted, _ := strings.Cut(string(status), "crashes")
	counted, _, _ = strings.Cut(counted, "\n")
	fmt.Printf("\nA storm by the kernel, %d a second wanted for %v, core_pipe_limit 8: %d crashes in %.1f s, of which the kernel handed over %d; the machine was busy for %v of processor time, others included; the spool has %s; status:%s.\n",
		rate, s.storm, made, took, dumped, used.Round(100*time.Millisecond), bytesText(sizeOf(spool, "")), counted)
	return nil
}

// setPattern sets core_pattern and core_pipe_limit, and returns what sets the former ones. An interrupt
// does so as well.
func setPattern(pattern string) (restore func(), err error) {
	const patternFile, limitFile = "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/core_pipe_limit"
	former := map[string][]byte{}
	for _, name := range []string{patternFile, limitFile} {
		if former[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	restore = func() {
		for name, text := range former {
			os.WriteFile(name, text, 0)
		}
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		restore()
		os.Exit(130)
	}()
	if err = os.WriteFile(limitFile, []byte("8\n"), 0); err == nil {
		err = os.WriteFile(patternFile, []byte(pattern+"\n"), 0)
	}
	if err != nil {
		restore()
	}
	return restore, err
}

// busy is the processor time of the machine since its start, but for idle time (proc_stat(5)).
func busy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	var user, nice, system, idle, wait, irq, soft int64
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft); err != nil {
		return 0
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100
	return time.Duration(user+nice+system+irq+soft) * tick
}
