/* A pool of threads parses texts with yajl. Whoever adds a job waits for its result and frees
   it; a thread of its own writes the log. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum { workers = 3, clients = 2, jobs = 20 };

struct job {
    struct job *next;
    const char *text;
    size_t size;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    int done, tokens;
    char *message;
};

struct line {
    struct line *next;
    char *text;
    int number;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, written = PTHREAD_COND_INITIALIZER;
static struct job *queue;
static struct line *lines;
static int idle, stopped, log_closed, numbers, logged;
static long tokens;
static char source[1 << 16];
static size_t source_size;

static int count(void *tokens)
{
    ++*(int *)tokens;
    return 1;
}

static int count_value(void *tokens, const unsigned char *unused, size_t size)
{
    (void)unused;
    *(int *)tokens += size > 0;
    return 1;
}

static const yajl_callbacks callbacks = { .yajl_null = count, .yajl_start_map = count, .yajl_end_map = count, .yajl_string = count_value, .yajl_map_key = count_value };

static void log_line(const char *text, int n)
{
    struct line *l = malloc(sizeof *l);
    l->text = strdup(text);
    pthread_mutex_lock(&log_lock);
    l->number = n;
    l->next = lines;
    lines = l;
    numbers++;
    pthread_cond_signal(&written);
    pthread_mutex_unlock(&log_lock);
}

static void *write_log(void *unused)
{
    for (;;) {
        struct line *l;
        pthread_mutex_lock(&log_lock);
        while (!lines && !log_closed)
            pthread_cond_wait(&written, &log_lock);
        l = lines;
        lines = NULL;
        pthread_mutex_unlock(&log_lock);
        if (!l)
            return unused;
        while (l) {
            struct line *next = l->next;
            assert(strlen(l->text) > 0);
            logged++;
            free(l->text);
            free(l);
            l = next;
        }
    }
}

static void parse(struct job *j)
{
    int n = 0;
    yajl_handle h = yajl_alloc(&callbacks, NULL, &n);
    yajl_status status = yajl_parse(h, (const unsigned char *)j->text, j->size);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(h);
    char *message = strdup(status == yajl_status_ok ? "parsed" : "refused");
    yajl_free(h);
    __sync_fetch_and_add(&tokens, n);
    log_line(message, n);
    pthread_mutex_lock(&j->lock);
    j->tokens = n;
    j->message = message;
    j->done = 1;
    pthread_cond_signal(&j->finished);
    pthread_mutex_unlock(&j->lock);
}

static void *run(void *unused)
{
    for (;;) {
        struct job *j;
        pthread_mutex_lock(&pool_lock);
        idle++;
        while (!queue && !stopped)
            pthread_cond_wait(&work, &pool_lock);
        idle--;
        j = queue;
        if (j)
            queue = j->next;
        pthread_mutex_unlock(&pool_lock);
        if (!j)
            return unused;
        parse(j);
    }
}

static struct job *add(const char *text, size_t size)
{
    struct job *j = calloc(1, sizeof *j);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->finished, NULL);
    j->text = text;
    j->size = size;
    pthread_mutex_lock(&pool_lock);
    j->next = queue;
    queue = j;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&pool_lock);
    return j;
}

static int wait_for(struct job *j)
{
    int n;
    pthread_mutex_lock(&j->lock);
    while (!j->done)
        pthread_cond_wait(&j->finished, &j->lock);
    n = j->tokens;
    assert(j->message);
    pthread_mutex_unlock(&j->lock);
    free(j->message);
    free(j);
    return n;
}

static void *ask(void *result)
{
    struct job *mine[jobs];
    int sum = 0;
    for (int i = 0; i < jobs; i++)
        mine[i] = add(source, source_size * (i + 1) / jobs);
    for (int i = 0; i < jobs; i++)
        sum += wait_for(mine[i]);
    *(int *)result = sum;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[workers], callers[clients], writer;
    int results[clients], sum = 0;
    FILE *f = fopen(argv[argc - 1], "rb");

    if (!f)
        return 1;
    source_size = fread(source, 1, sizeof source, f);
    fclose(f);
    pthread_create(&writer, NULL, write_log, NULL);
    for (int i = 0; i < workers; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < clients; i++)
        pthread_create(&callers[i], NULL, ask, &results[i]);
    for (int i = 0; i < clients; i++) {
        pthread_join(callers[i], NULL);
        sum += results[i];
    }
    pthread_mutex_lock(&pool_lock);
    stopped = 1;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&pool_lock);
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_lock(&log_lock);
    log_closed = 1;
    pthread_cond_signal(&written);
    pthread_mutex_unlock(&log_lock);
    pthread_join(writer, NULL);
    assert(tokens == sum && logged == numbers && idle == 0);
    printf("%d tokens, %d lines\n", sum, logged);
    return 0;
}
