/* Threads take files from a queue, parse them with cJSON, and add to common totals. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cJSON.h"

enum { workers = 4, slots = 4, rounds = 6 };

/* A document is freed by the last of its users. */
struct document {
    cJSON *value;
    int users;
};

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER, total_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static struct document *queue[slots];
static int first, count, closed;
static struct { int documents, nodes; char *last; } total;
static int parsed;
static char text[1 << 16];

static int nodes(const cJSON *v)
{
    int n = 1;
    for (const cJSON *c = v->child; c; c = c->next)
        n += nodes(c);
    return n;
}

static void put(struct document *d)
{
    pthread_mutex_lock(&queue_lock);
    while (count == slots)
        pthread_cond_wait(&emptied, &queue_lock);
    queue[(first + count) % slots] = d;
    count++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue_lock);
}

static struct document *take(void)
{
    struct document *d = NULL;
    pthread_mutex_lock(&queue_lock);
    while (count == 0 && !closed)
        pthread_cond_wait(&filled, &queue_lock);
    if (count > 0) {
        d = queue[first];
        queue[first] = NULL;
        first = (first + 1) % slots;
        count--;
        pthread_cond_signal(&emptied);
    }
    pthread_mutex_unlock(&queue_lock);
    return d;
}

static void release(struct document *d)
{
    if (__sync_sub_and_fetch(&d->users, 1) == 0) {
        cJSON_Delete(d->value);
        free(d);
    }
}

static void *work(void *unused)
{
    struct document *d;
    while ((d = take()) != NULL) {
        int n = nodes(d->value);
        char *printed = cJSON_PrintUnformatted(d->value);
        assert(printed);
        pthread_mutex_lock(&total_lock);
        total.documents++;
        total.nodes += n;
        free(total.last);
        total.last = printed;
        pthread_mutex_unlock(&total_lock);
        __sync_fetch_and_add(&parsed, n);
        release(d);
    }
    return unused;
}

static void close_queue(void)
{
    pthread_mutex_lock(&queue_lock);
    closed = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&queue_lock);
}

int main(int argc, char **argv)
{
    pthread_t threads[workers];
    int expected = 0, made = 0;
    FILE *f = fopen(argv[argc - 1], "rb");

    if (!f)
        return 1;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    for (int i = 0; i < workers; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < rounds * workers; i++) {
        struct document *d = malloc(sizeof *d);
        d->value = cJSON_Parse(text);
        d->users = 2;
        if (!d->value) {
            free(d);
            break;
        }
        put(d);
        expected += nodes(d->value);
        made++;
        release(d);
    }
    close_queue();
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    assert(count == 0);
    assert(total.documents == made);
    assert(total.nodes == expected && parsed == expected);
    printf("%d documents, %d nodes\n%s\n", total.documents, total.nodes, total.last ? total.last : "none");
    free(total.last);
    return 0;
}
