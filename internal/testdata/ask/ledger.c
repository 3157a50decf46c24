/* Threads book into accounts. Memory of the heap and of the stack is used again, so that a write to an address is not always one
   of the variable that has it in the end. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BOOKINGS = 6, CLERKS = 2 };

struct account {
    long balance;
    int owner;
    struct account *next;
};

struct account *head;
int booked, untouched = 5;
char name[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rates = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
volatile long sink;

__attribute__((noinline)) long book(struct account *a, long sum)
{
    a->balance += sum; /* BOOK */
    return a->balance;
}

static void *clerk(void *arg)
{
    long sum = (long)arg;
    for (int i = 0; i < BOOKINGS; i++) {
        pthread_mutex_lock(&lock);
        booked++; /* COUNT */
        book(head, sum);
        pthread_mutex_unlock(&lock);
        pthread_rwlock_rdlock(&rates);
        usleep(100);
        pthread_rwlock_unlock(&rates);
        pthread_spin_lock(&spin);
        sink++;
        pthread_spin_unlock(&spin);
    }
    return NULL;
}

/* The frames of both are at the same place. */
__attribute__((noinline)) static void scribble(long n)
{
    volatile long junk[8];
    for (int i = 0; i < 8; i++)
        junk[i] = n + i; /* JUNK */
    sink += junk[n & 7];
}

__attribute__((noinline)) static long settle(long n)
{
    volatile long steps[8];
    for (int i = 0; i < 8; i++)
        steps[i] = n * i; /* STEP */
    if (steps[7] == 21)
        abort(); /* ABORT */
    return steps[3];
}

/* An object that had another one's memory: the agent keeps freed memory from reuse, until there is more of it than it keeps. */
static struct account *reused(void)
{
    struct account *first = malloc(sizeof *first);
    volatile uintptr_t place = (uintptr_t)first; /* compilers know that new memory is none that there was */
    first->balance = 1; /* FIRST */
    free(first);
    for (;;) {
        struct account *again = malloc(sizeof *again);
        if ((uintptr_t)again == place)
            return again;
        free(again);
    }
}

int main(void)
{
    int p[2];
    pthread_t clerks[CLERKS];
    head = reused();
    head->balance = 0; /* ZERO */
    head->owner = 3;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    if (pipe(p) || write(p[1], "ledger", 7) != 7 || read(p[0], name, 7) != 7) /* READ */
        return 1;
    for (long i = 0; i < CLERKS; i++)
        pthread_create(&clerks[i], NULL, clerk, (void *)(i + 1));
    for (int i = 0; i < CLERKS; i++)
        pthread_join(clerks[i], NULL);
    scribble(40);
    settle(2);
    scribble(50);
    settle(3);
    return 0;
}
