/* Threads look values up in a table that they share. Whoever misses a value parses it with
   jansson; entries are counted by their users and evicted. */
#include <assert.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { workers = 4, keys = 9, room = 5, steps = 60 };

struct entry {
    struct entry *next;
    int key, users;
    size_t size;
    char *text;
};

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER, gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER, ready = PTHREAD_COND_INITIALIZER;
static struct entry *table[keys];
static int order[room], oldest, entries;
static int hits, misses;
static int waiting, opened;
static char source[1 << 16];
static json_t *document;

static void release(struct entry *e)
{
    if (__sync_sub_and_fetch(&e->users, 1) == 0) {
        free(e->text);
        free(e);
    }
}

static struct entry *find(int key)
{
    struct entry *e;
    pthread_rwlock_rdlock(&table_lock);
    e = table[key];
    if (e)
        __sync_add_and_fetch(&e->users, 1);
    pthread_rwlock_unlock(&table_lock);
    return e;
}

/* The caller has both locks. */
static void evict(void)
{
    int key = order[oldest % room];
    struct entry *e = table[key];
    oldest++;
    entries--;
    table[key] = NULL;
    release(e);
}

static void insert(struct entry *e)
{
    pthread_rwlock_wrlock(&table_lock);
    pthread_mutex_lock(&order_lock);
    if (table[e->key] == NULL) {
        if (entries == room)
            evict();
        e->users++;
        table[e->key] = e;
        order[(oldest + entries) % room] = e->key;
        entries++;
    }
    pthread_mutex_unlock(&order_lock);
    pthread_rwlock_unlock(&table_lock);
}

static struct entry *make(int key)
{
    struct entry *e = calloc(1, sizeof *e);
    json_t *value = json_loads(source, 0, NULL);
    assert(value);
    e->key = key;
    e->users = 1;
    e->text = json_dumps(value, JSON_SORT_KEYS | JSON_INDENT(key % 4));
    e->size = strlen(e->text);
    json_decref(value);
    return e;
}

static void *look_up(void *argument)
{
    unsigned random = *(unsigned *)argument;
    long *total = malloc(sizeof *total);
    pthread_mutex_lock(&gate_lock);
    waiting++;
    pthread_cond_signal(&ready);
    while (!opened)
        pthread_cond_wait(&gate, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    *total = 0;
    for (int i = 0; i < steps; i++) {
        random = random * 1103515245 + 12345;
        int key = (random >> 16) % keys;
        struct entry *e = find(key);
        if (e) {
            __sync_fetch_and_add(&hits, 1);
        } else {
            __sync_fetch_and_add(&misses, 1);
            e = make(key);
            insert(e);
        }
        assert(e->key == key && strlen(e->text) == e->size);
        *total += e->size;
        release(e);
    }
    return total;
}

static void clear(void)
{
    pthread_rwlock_wrlock(&table_lock);
    pthread_mutex_lock(&order_lock);
    while (entries > 0)
        evict();
    pthread_mutex_unlock(&order_lock);
    pthread_rwlock_unlock(&table_lock);
}

int main(int argc, char **argv)
{
    pthread_t threads[workers];
    unsigned seeds[workers];
    long sum = 0;
    FILE *f = fopen(argv[argc - 1], "rb");

    if (!f)
        return 1;
    source[fread(source, 1, sizeof source - 1, f)] = '\0';
    fclose(f);
    document = json_loads(source, 0, NULL);
    if (!document)
        return 2;
    json_decref(document);
    for (int i = 0; i < workers; i++) {
        seeds[i] = i + 1;
        pthread_create(&threads[i], NULL, look_up, &seeds[i]);
    }
    pthread_mutex_lock(&gate_lock);
    while (waiting < workers)
        pthread_cond_wait(&ready, &gate_lock);
    opened = 1;
    pthread_cond_broadcast(&gate);
    pthread_mutex_unlock(&gate_lock);
    for (int i = 0; i < workers; i++) {
        void *total;
        pthread_join(threads[i], &total);
        sum += *(long *)total;
        free(total);
    }
    clear();
    assert(hits + misses == workers * steps);
    printf("%ld characters\n", sum);
    return 0;
}
