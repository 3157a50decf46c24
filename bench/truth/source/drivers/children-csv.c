/* A child sends signals; handlers queue what came, and the main program, which parses a table
   with libcsv, sleeps until there is something. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "csv.h"

enum { messages = 60, room = 64 };

struct event {
    struct event *next;
    int number, value;
};

static struct event pool[room], *spare, *first, **last = &first;
static int queued, sums[2], numbers, balance;
static volatile sig_atomic_t ended, finished_child;
static int fields, rows;
static char text[1 << 14];

static void push(int value)
{
    struct event *e = spare;
    if (!e)
        abort();
    spare = e->next;
    e->next = NULL;
    e->number = numbers++;
    e->value = value;
    *last = e;
    last = &e->next;
    queued++;
}

static void message(int signal, siginfo_t *info, void *unused)
{
    (void)signal;
    (void)unused;
    push(info->si_value.sival_int);
    balance += info->si_value.sival_int;
}

static void child_ended(int signal)
{
    int status;
    (void)signal;
    if (waitpid(-1, &status, WNOHANG) > 0) {
        finished_child = 1;
        ended = 1;
    }
}

static void both(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGRTMIN);
    sigaddset(set, SIGCHLD);
}

static struct event *pop(void)
{
    sigset_t set, old;
    struct event *e;
    both(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    while (!first && !ended)
        sigsuspend(&old);
    e = first;
    if (e) {
        first = e->next;
        if (!first)
            last = &first;
        queued--;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return e;
}

static void give_back(struct event *e)
{
    sigset_t set, old;
    both(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    e->next = spare;
    spare = e;
    balance -= e->value;
    sums[e->number % 2] += e->value;
    sigprocmask(SIG_SETMASK, &old, NULL);
}

static void send(pid_t parent, int pause)
{
    for (int i = 0; i < messages; i++) {
        union sigval v = { .sival_int = i };
        sigqueue(parent, SIGRTMIN, v);
        if (i % 4 == 3)
            usleep(pause);
    }
    _exit(0);
}

static void field(void *data, size_t size, void *unused)
{
    (void)data;
    (void)unused;
    fields += size > 0;
}

static void row(int end, void *unused)
{
    (void)end;
    (void)unused;
    rows++;
}

static void handle(void)
{
    struct sigaction act = { .sa_sigaction = message, .sa_flags = SA_SIGINFO | SA_RESTART }, child = { .sa_handler = child_ended, .sa_flags = SA_RESTART };
    sigemptyset(&act.sa_mask);
    sigaddset(&act.sa_mask, SIGCHLD);
    sigaction(SIGRTMIN, &act, NULL);
    sigemptyset(&child.sa_mask);
    sigaddset(&child.sa_mask, SIGRTMIN);
    sigaction(SIGCHLD, &child, NULL);
}

static void parse(size_t size)
{
    struct csv_parser p;
    csv_init(&p, 0);
    csv_parse(&p, text, size, field, row, NULL);
    csv_fini(&p, field, row, NULL);
    csv_free(&p);
}

int main(int argc, char **argv)
{
    struct event *e;
    FILE *f = fopen(argv[argc - 1], "rb");

    if (!f)
        return 1;
    size_t size = fread(text, 1, sizeof text, f);
    fclose(f);
    for (int i = 0; i < room; i++) {
        pool[i].next = spare;
        spare = &pool[i];
    }
    handle();
    pid_t parent = getpid();
    if (fork() == 0)
        send(parent, 300);
    while ((e = pop()) != NULL) {
        if (e->value % 20 == 0)
            parse(size);
        give_back(e);
    }
    assert(finished_child && balance == 0 && queued == 0);
    assert(sums[0] + sums[1] == messages * (messages - 1) / 2 && numbers == messages);
    printf("%d fields in %d rows\n", fields, rows);
    return 0;
}
