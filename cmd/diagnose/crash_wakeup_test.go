package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
)

// waiting is a program whose worker waits for something that loader has already done, in one of
// several ways. An alarm or its caller ends it.
const waiting = `
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static sem_t filled;
static int config, word;

static void *loader(void *p)
{
#if defined CONDITION
	config = 42;
	pthread_cond_broadcast(&ready);
#elif defined SEMAPHORE
	sem_post(&filled);
#elif defined FUTEX
	config = 42;
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
#endif
	return p;
}

static void *worker(void *p)
{
#ifdef FIXED
	if (config)
		return p;
#endif
#if defined SEMAPHORE
	sem_wait(&filled);
#ifndef FIXED
	sem_wait(&filled);
#endif
#elif defined FUTEX
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
#else
	pthread_mutex_lock(&lock);
	pthread_cond_wait(&ready, &lock);
	pthread_mutex_unlock(&lock);
#endif
	return p;
}

int main(int argc, char **argv)
{
	pthread_t l, w;

	if (argc > 1)
		alarm(atoi(argv[1]));
	pthread_create(&l, 0, loader, 0);
	pthread_join(l, 0);
	pthread_create(&w, 0, worker, 0);
	puts("ready");
	fflush(stdout);
	pthread_join(w, 0);
	return argv == 0;
}
`

func TestCrashWakeups(t *testing.T) {
	for _, x := range []struct {
		name, way, compiler string
		says                string
	}{
		{"condition", "CONDITION", "clang", `lost wakeup: ready was signalled by thread 2 "loader" before thread 3 "worker" waited for it, and no thread signals it afterwards`},
		{"never", "NOTHING", "", `thread 3 "worker" waits for ready, and no thread ever signals it`},
		{"semaphore", "SEMAPHORE", "", `thread 3 "worker" waits for filled, which was waited for 2 times and posted once; no thread posts it afterwards`},
		{"futex", "FUTEX", "", `lost wakeup: word was woken by thread 2 "loader" before thread 3 "worker" waited for it, and no thread wakes it afterwards`},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			program := crashtest.Program{Source: "waiting.c", Text: waiting, Compiler: x.compiler, Flags: []string{"-O1", "-pthread", "-D" + x.way}}
			cmd := recordCommand(t, "--", crashtest.Compile(t, program), "5")
			if status, _, stderr := ended(t, cmd); !status.Signaled() || status.Signal() != unix.SIGALRM {
				t.Fatalf("%v: %s", status, stderr)
			}
			got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings", "waiting-0001-SIGALRM"), "--experiments", "1")
			for _, says := range []string{x.says, "missing-wakeup", "deadlock in worker", "[replayed]"} {
				if got.status != exitOK || !strings.Contains(got.stdout, says) {
					t.Errorf("%q is not told: %s%s", says, got.stdout, got.stderr)
				}
			}
			if x.way == "NOTHING" {
				return
			}
			program.Flags = append(program.Flags, "-DFIXED")
			twin := recordCommand(t, "--", crashtest.Compile(t, program), "60")
			if status, _, stderr := ended(t, twin); status.ExitStatus() != 0 {
				t.Errorf("the twin: %v: %s", status, stderr)
			}
		})
	}
}

// queue hands numbers to workers by a queue with room for two. In some ways of building it a signal is missing, in one
// what the workers wait for never comes about.
const queue = `
#include <pthread.h>
#include <unistd.h>
#ifndef WORKERS
#define WORKERS 3
#endif
enum { room = 2, workers = WORKERS, numbers = 40 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, taken = PTHREAD_COND_INITIALIZER;
static int list[room], count, closed;
static long sum;

static void put(int n)
{
	pthread_mutex_lock(&lock);
	while (count == room)
		pthread_cond_wait(&taken, &lock);
	list[count++] = n;
#ifndef NO_SIGNAL
	pthread_cond_signal(&filled);
#endif
	pthread_mutex_unlock(&lock);
}

static void *work(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (count == 0 && !closed)
			pthread_cond_wait(&filled, &lock);
		if (count == 0) {
			pthread_mutex_unlock(&lock);
			return unused;
		}
		sum += list[--count];
		pthread_cond_signal(&taken);
		pthread_mutex_unlock(&lock);
	}
}

int main(void)
{
	pthread_t threads[workers];

	alarm(5);
	for (int i = 0; i < workers; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	usleep(200000);
	for (int i = 0; i < numbers; i++)
		put(i);
	usleep(200000);
	pthread_mutex_lock(&lock);
#ifndef NOT_CLOSED
	closed = 1;
#endif
#ifndef NO_BROADCAST
	pthread_cond_broadcast(&filled);
#endif
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < workers; i++)
		pthread_join(threads[i], NULL);
	return sum != numbers * (numbers - 1) / 2;
}
`

// TestCrashMissingSignals: of the conditions that threads wait for, the one whose signal is missing is told, as waits that end without
// it show. Where they do not help, none is.
func TestCrashMissingSignals(t *testing.T) {
	const filled, gone = "waits for filled", "missing-wakeup"
	for _, x := range []struct {
		way, says, not string
	}{
		{"NO_SIGNAL", filled, "variable    taken"},
		{"NO_BROADCAST", "no thread signals it afterwards", "[proved]"},
		{"NOT_CLOSED", "while (count == 0 && !closed)", gone},
	} {
		for _, build := range []struct{ compiler, level string }{{"", "-O0"}, {"clang", "-O2"}} {
			t.Run(strings.Fields(x.way)[0]+build.level, func(t *testing.T) {
				t.Parallel()
				exe := crashtest.Compile(t, crashtest.Program{Source: "queue.c", Text: queue, Compiler: build.compiler, Flags: append(strings.Fields("-D"+x.way), build.level, "-pthread")})
				got := diagnose(t, nil, "crash", "--time", "1m", "--recording", recordedAt(t, exe))
				before, _, _ := strings.Cut(got.stdout, "Looked at and ruled out")
				if got.status != exitOK || !strings.Contains(got.stdout, x.says) || strings.Contains(before, x.not) {
					t.Errorf("%s%s", got.stdout, got.stderr)
				}
				if helps := "waits for filled end when no thread can continue: 0 of 3"; x.not != gone && !strings.Contains(got.stdout, helps) {
					t.Errorf("%q is not told: %s", helps, got.stdout)
				}
			})
		}
	}
}

// rustWaiting signals a condition variable before its other thread waits for it.
const rustWaiting = `
use std::sync::{Arc, Condvar, Mutex};
use std::{thread, time::Duration};

extern "C" { fn alarm(seconds: u32) -> u32; }

fn main() {
    let news = Arc::new((Mutex::new(()), Condvar::new()));
    let other = news.clone();
    let waiter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        drop(other.1.wait(other.0.lock().unwrap()));
    });
    news.1.notify_one();
    unsafe { alarm(5); }
    waiter.join().unwrap();
}
`

// TestCrashRustWakeup: a condition variable of Rust's library is a futex, of which each signal is a call.
func TestCrashRustWakeup(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "news.rs", Text: rustWaiting})
	got := diagnose(t, nil, "crash", "--time", "1m", "--recording", recordedAt(t, exe))
	for _, says := range []string{"waits for Rust condition variable", "lost wakeup: the Rust condition variable at ", " was signalled by the main thread before thread 2"} {
		if got.status != exitOK || !strings.Contains(got.stdout, says) {
			t.Errorf("%q is not told: %s%s", says, got.stdout, got.stderr)
		}
	}
}

// If one of several runs hangs and is interrupted at the terminal, its recording is kept, and the
// command says what the threads wait for.
func TestRecordRepeatInterrupted(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "waiting.c", Text: waiting, Flags: []string{"-O1", "-pthread", "-DCONDITION"}})
	cmd := recordCommand(t, "--repeat", "5", "--", exe)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var said strings.Builder
	cmd.Stderr = &said
	lines := startLines(t, cmd)
	if !lines.Scan() {
		t.Fatal("no output")
	}
	awaitAsleep(t, "waiting", cmd)
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	cmd.Wait()
	for _, says := range []string{"run 1 was interrupted: the program died of SIGINT", "deadlock in worker: ", "waits for condition variable `ready`",
		"diagnose crash --recording recordings/waiting-0001-SIGINT"} {
		if !strings.Contains(said.String(), says) {
			t.Errorf("%q is not said: %s", says, said.String())
		}
	}
	recordingNamed(t, cmd, "waiting-0001-SIGINT")
}

// awaitAsleep waits until all threads of the program sleep in a futex call, which no event shows.
func awaitAsleep(t *testing.T, name string, cmd *exec.Cmd) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if asleep(t, name, cmd) {
			return
		}
	}
	t.Fatal("the program's threads do not wait")
}

func asleep(t *testing.T, name string, cmd *exec.Cmd) bool {
	t.Helper()
	threads, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(stat), "("+name+")") {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 4 || fields[3] != fmt.Sprint(cmd.Process.Pid) { // its session
			continue
		}
		if found++; fields[0] != "S" {
			return false
		}
	}
	return found == 2
}
