/* A timer's handler takes samples of what the main program parses with cJSON. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include "cJSON.h"

enum { rounds = 2000, kinds = 8, most = 64 };

struct task {
    struct task *next;
    char name[24];
    int length, samples;
};

static struct task *tasks;
static int live, seen;
static struct { int used, lost; int numbers[most]; } ring;
static struct { int first, second; } pair;
static char *label;
static volatile sig_atomic_t ticks, active;
static char text[1 << 16];

static void tick(int signal)
{
    int n = 0;
    (void)signal;
    ticks++;
    for (struct task *t = tasks; t; t = t->next) {
        if (t->name[0] != 't' || t->length != (int)strlen(t->name))
            abort();
        t->samples++;
        n++;
    }
    if (n != live || pair.first != pair.second)
        abort();
    if (label && strlen(label) != 12)
        abort();
    if (active && ring.used < most)
        ring.numbers[ring.used++] = n;
    else
        ring.lost++;
}

static void block(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGALRM);
}

static void add(int number)
{
    sigset_t alarm, old;
    struct task *t = malloc(sizeof *t);
    block(&alarm);
    t->samples = 0;
    t->length = snprintf(t->name, sizeof t->name, "t%d", number);
    sigprocmask(SIG_BLOCK, &alarm, &old);
    t->next = tasks;
    live++;
    tasks = t;
    sigprocmask(SIG_SETMASK, &old, NULL);
}

static int take(void)
{
    sigset_t alarm, old;
    struct task *t;
    int n;
    block(&alarm);
    sigprocmask(SIG_BLOCK, &alarm, &old);
    t = tasks;
    tasks = t->next;
    live--;
    n = t->samples;
    sigprocmask(SIG_SETMASK, &old, NULL);
    memset(t->name, 0, sizeof t->name);
    free(t);
    return n;
}

static void rename_label(int number)
{
    sigset_t alarm, old;
    char *name = malloc(13);
    snprintf(name, 13, "label %06d", number);
    block(&alarm);
    sigprocmask(SIG_BLOCK, &alarm, &old);
    char *last = label;
    label = name;
    pair.first = number;
    pair.second = number;
    sigprocmask(SIG_SETMASK, &old, NULL);
    free(last);
}

static void drain(void)
{
    sigset_t alarm, old;
    block(&alarm);
    sigprocmask(SIG_BLOCK, &alarm, &old);
    for (int i = 0; i < ring.used; i++)
        seen += ring.numbers[i] >= 0;
    ring.used = 0;
    seen += ring.lost;
    ring.lost = 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
}

static void wait_for(int wanted)
{
    sigset_t alarm, old;
    block(&alarm);
    sigprocmask(SIG_BLOCK, &alarm, &old);
    while (ticks < wanted)
        sigsuspend(&old);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

int main(int argc, char **argv)
{
    struct sigaction act = { .sa_handler = tick, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 60 }, { 0, 60 } }, never = { { 0, 0 }, { 0, 0 } };
    int nodes = 0;
    FILE *f = fopen(argv[argc - 1], "rb");

    if (!f)
        return 1;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    sigemptyset(&act.sa_mask);
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    active = 1;
    for (int i = 0; i < rounds; i++) {
        cJSON *value = NULL;
        for (int k = 0; k < kinds; k++)
            add(i * kinds + k);
        rename_label(i);
        if (i % 10 == 0)
            value = cJSON_Parse(text);
        if (value) {
            nodes += cJSON_GetArraySize(value);
            cJSON_Delete(value);
        }
        for (int k = 0; k < kinds; k++)
            take();
        drain();
        if (i % 50 == 0)
            wait_for(ticks + 3);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    drain();
    assert(seen == ticks && live == 0 && tasks == NULL);
    free(label);
    printf("%d nodes\n", nodes);
    return 0;
}
