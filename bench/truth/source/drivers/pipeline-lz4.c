/* A reader cuts a file into blocks, threads compress them with LZ4, and a writer takes them in
   order. Blocks are used again. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lz4.h"

enum { workers = 3, blocks = 6, block_size = 700, laps = 4 };
enum state { READ = 1, BUSY, PACKED };

struct block {
    struct block *next;
    enum state state;
    int number, size, packed;
    char *in, *out;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER, list_lock = PTHREAD_MUTEX_INITIALIZER, sums_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER, readable = PTHREAD_COND_INITIALIZER, packed = PTHREAD_COND_INITIALIZER;
static struct block *pool, *list, **end = &list;
static int pool_size, numbers, all_read;
static struct { long in, out; int blocks; unsigned sum; } sums;
static int compressed;

static struct block *get(void)
{
    struct block *b;
    pthread_mutex_lock(&pool_lock);
    while (pool_size == 0)
        pthread_cond_wait(&returned, &pool_lock);
    b = pool;
    pool = b->next;
    pool_size--;
    b->next = NULL;
    pthread_mutex_unlock(&pool_lock);
    return b;
}

static void give_back(struct block *b)
{
    pthread_mutex_lock(&pool_lock);
    b->next = pool;
    pool = b;
    pool_size++;
    pthread_cond_signal(&returned);
    pthread_mutex_unlock(&pool_lock);
}

static void append(struct block *b)
{
    pthread_mutex_lock(&list_lock);
    b->number = numbers++;
    b->state = READ;
    *end = b;
    end = &b->next;
    pthread_cond_signal(&readable);
    pthread_mutex_unlock(&list_lock);
}

static struct block *first(enum state state)
{
    struct block *b = list;
    while (b && b->state != state)
        b = b->next;
    return b;
}

static void *compress(void *unused)
{
    for (;;) {
        struct block *b;
        pthread_mutex_lock(&list_lock);
        while ((b = first(READ)) == NULL && !all_read)
            pthread_cond_wait(&readable, &list_lock);
        if (b)
            b->state = BUSY;
        pthread_mutex_unlock(&list_lock);
        if (!b)
            return unused;
        b->packed = LZ4_compress_default(b->in, b->out, b->size, LZ4_compressBound(block_size));
        assert(b->packed > 0);
        __sync_fetch_and_add(&compressed, b->packed);
        pthread_mutex_lock(&list_lock);
        b->state = PACKED;
        pthread_cond_broadcast(&packed);
        pthread_mutex_unlock(&list_lock);
    }
}

static struct block *unlink_first(void)
{
    struct block *b;
    pthread_mutex_lock(&list_lock);
    while (!(list && list->state == PACKED) && !(all_read && !list))
        pthread_cond_wait(&packed, &list_lock);
    b = list;
    if (b) {
        list = b->next;
        if (!list)
            end = &list;
    }
    pthread_mutex_unlock(&list_lock);
    return b;
}

static void *write_all(void *sum)
{
    struct block *b;
    int number = 0;
    while ((b = unlink_first()) != NULL) {
        char text[block_size];
        assert(b->number == number++);
        assert(LZ4_decompress_safe(b->out, text, b->packed, block_size) == b->size);
        for (int i = 0; i < b->size; i++)
            *(unsigned *)sum = *(unsigned *)sum * 31 + (unsigned char)text[i];
        pthread_mutex_lock(&sums_lock);
        sums.out += b->packed;
        sums.blocks++;
        sums.sum = *(unsigned *)sum;
        pthread_mutex_unlock(&sums_lock);
        give_back(b);
    }
    return sum;
}

int main(int argc, char **argv)
{
    pthread_t threads[workers], writer;
    unsigned *sum = calloc(1, sizeof *sum);
    FILE *f = fopen(argv[argc - 1], "rb");

    if (!f)
        return 1;
    for (int i = 0; i < blocks; i++) {
        struct block *b = calloc(1, sizeof *b);
        b->in = malloc(block_size);
        b->out = malloc(LZ4_compressBound(block_size));
        give_back(b);
    }
    for (int i = 0; i < workers; i++)
        pthread_create(&threads[i], NULL, compress, NULL);
    pthread_create(&writer, NULL, write_all, sum);
    for (int lap = 0; lap < laps; lap++) {
        int n;
        rewind(f);
        do {
            struct block *b = get();
            n = b->size = fread(b->in, 1, block_size, f);
            if (n == 0) {
                give_back(b);
                break;
            }
            pthread_mutex_lock(&sums_lock);
            sums.in += n;
            pthread_mutex_unlock(&sums_lock);
            append(b);
        } while (n == block_size && numbers < 200);
    }
    fclose(f);
    pthread_mutex_lock(&list_lock);
    all_read = 1;
    pthread_cond_broadcast(&readable);
    pthread_cond_broadcast(&packed);
    pthread_mutex_unlock(&list_lock);
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    pthread_join(writer, NULL);
    free(sum);
    assert(pool_size == blocks && sums.blocks == numbers && sums.out == compressed);
    while (pool) {
        struct block *b = pool;
        pool = b->next;
        free(b->in);
        free(b->out);
        free(b);
    }
    printf("%d blocks of %ld bytes, sum %u\n", sums.blocks, sums.in, sums.sum);
    return 0;
}
