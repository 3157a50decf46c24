/* Functions of the program that debug code calls in copies of the process, while other threads hold locks: one gives its lock back by
   itself, the other waits for main. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

struct item {
    struct item *next;
    int key;
    double weight;
    char name[20];
};
struct pair {
    long a, b;
};
struct mixed {
    double x;
    long n;
};
struct big {
    long n[12];
};

static pthread_mutex_t lent = PTHREAD_MUTEX_INITIALIZER, kept = PTHREAD_MUTEX_INITIALIZER;
static sem_t have[2], done;
int total = 7, places;
struct item *items;
volatile int forever = 1;
int (*chosen)(const struct item *);

KEPT int count(void) { return ++total; }
KEPT long add(int a, int b, int c, int d, int e, int f, int g, char h) { return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h; }
KEPT double scale(double x, float y) { return x * y + total; }
KEPT long double longer(long double x, int n) { return x / n; }
KEPT struct pair swapped(struct pair p) { return (struct pair){p.b, p.a}; }
KEPT struct mixed raised(struct mixed m) { return (struct mixed){m.x + 1, m.n + 2}; }
KEPT struct big twice(struct big b)
{
    for (int i = 0; i < 12; i++)
        b.n[i] *= 2;
    return b;
}
KEPT size_t measure(const char *text) { return strlen(text) + (size_t)total; }
KEPT int shout(char *text)
{
    int n = 0;
    for (; *text; text++)
        if (*text >= 'a' && *text <= 'z')
            *text -= 'a' - 'A', n++;
    return n;
}
KEPT struct item *make(int key, const char *name)
{
    struct item *x = calloc(1, sizeof *x);
    x->key = key;
    x->weight = key * 0.5;
    strncpy(x->name, name, sizeof x->name - 1);
    x->next = items;
    return items = x;
}
KEPT void fill(struct item *x, int key) { *x = (struct item){items, key, 2.5, "filled"}; }
KEPT int key_of(const struct item *x) { return x->key; }
KEPT int by_key(const void *a, const void *b) { return ((const struct item *)a)->key - ((const struct item *)b)->key; }
KEPT long sum(const char *bytes, size_t n)
{
    long s = 0;
    for (size_t i = 0; i < n; i++)
        s += bytes[i];
    return s;
}

KEPT int lock_lent(void)
{
    pthread_mutex_lock(&lent);
    int n = ++total;
    pthread_mutex_unlock(&lent);
    return n;
}
KEPT int lock_kept(void)
{
    pthread_mutex_lock(&kept);
    pthread_mutex_unlock(&kept);
    return 0;
}
/* What it does must not be seen outside of the copy. */
KEPT int save(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    long n = write(fd < 0 ? 1 : fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return n > 0 ? ++total : --total;
}

/* Only the kernel uses these bytes. */
KEPT long put(const char *bytes, size_t n) { return write(1, bytes, n); }

KEPT int fail(const int *p) { return *p; }
KEPT int leave(void) { exit(3); }
KEPT int spin(void)
{
    while (forever)
        total++;
    return 0;
}
KEPT int apply(int (*f)(int), int n) { return f(n); }

static void *lend(void *unused)
{
    pthread_mutex_lock(&lent);
    sem_post(&have[0]);
    for (int i = 0; i < 50; i++)
        usleep(1000);
    pthread_mutex_unlock(&lent);
    return unused;
}

static void *keep(void *unused)
{
    pthread_mutex_lock(&kept);
    sem_post(&have[1]);
    while (sem_wait(&done))
        ;
    pthread_mutex_unlock(&kept);
    return unused;
}

KEPT void place(int n)
{
    places += n; /* PLACE */
}

int main(int argc, char **argv)
{
    pthread_t t[2];
    (void)argv;
    pthread_create(&t[0], 0, lend, 0);
    pthread_create(&t[1], 0, keep, 0);
    sem_wait(&have[0]);
    sem_wait(&have[1]);
    chosen = key_of;
    make(argc, "first");
    for (int i = 0; i < 3; i++) {
        place(1);
        count();
    }
    sem_post(&done);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    if (total == 10 && places == 3)
        abort();
    return 0;
}
