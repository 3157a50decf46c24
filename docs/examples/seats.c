// Two clerks sell the last seat: each looks for a free seat and takes it later, and
// releases the lock in between. Most runs pass.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seats = 1;

static int seat_is_free(void)
{
    pthread_mutex_lock(&lock);
    int is_free = seats > 0;
    pthread_mutex_unlock(&lock);
    return is_free;
}

static void take_seat(void)
{
    pthread_mutex_lock(&lock);
    assert(seats > 0);
    seats--;
    pthread_mutex_unlock(&lock);
}

static void *clerk(void *name)
{
    if (seat_is_free()) {
        printf("%s sells a seat\n", (char *)name);
        take_seat();
    }
    return NULL;
}

int main(void)
{
    pthread_t clerks[2];
    pthread_create(&clerks[0], NULL, clerk, "anna");
    pthread_create(&clerks[1], NULL, clerk, "ben");
    pthread_join(clerks[0], NULL);
    pthread_join(clerks[1], NULL);
    return 0;
}
