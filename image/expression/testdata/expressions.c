/* Every CHECK notes an expression with the value that the compiler gives it; the test evaluates the
   same text in the core. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum color { RED, GREEN = 5, BLUE, NONE = -1 };
enum flags { READ = 1, WRITE = 2 };

typedef struct item {
    struct item *next;
    const char *name;
    int key;
    unsigned char small;
    signed char negative;
    unsigned low : 3;
    int high : 5;
    union {
        float ratio;
        uint32_t raw;
    };
    struct {
        short x, y;
    } at;
    enum color color;
} item;

typedef struct queue {
    size_t len;
    item *head;
    item fixed[3];
    char label[16];
    double weight;
    int (*handler)(int);
} queue;

struct check {
    const char *text;
    long long whole;
    double real;
    unsigned long size;
    char kind; /* i integer, r real */
};

struct check checks[256];
int number_of_checks;
static queue hidden;
queue shared;
unsigned table[4][5];
static __thread int local_count = 41;

static void note(const char *text, long long whole, double real, unsigned long size, char kind)
{
    checks[number_of_checks++] = (struct check){text, whole, real, size, kind};
}
#define I(...) note(#__VA_ARGS__, (long long)(__VA_ARGS__), 0, sizeof(__VA_ARGS__), 'i')
#define R(...) note(#__VA_ARGS__, 0, (__VA_ARGS__), sizeof(__VA_ARGS__), 'r')

static int twice(int v) { return 2 * v; }

__attribute__((noinline)) static void work(queue *q, int n, double factor, const char *word)
{
    static int calls = 7;
    int array[4] = {10, -20, 30, 40};
    item *p = q->head;
    item copy = *p;
    unsigned big = 4000000000u;
    long wide = -5000000000L;
    char c = 'x';
    float half = 0.5f;
    _Bool yes = 1;
    uint8_t byte = 200;
    int8_t tiny = -100;
    int *end = array + 4;
    void *raw = array;

    I(q->len); I(q->head->key); I((*q->head).key); I(q->head->next->key); I(p->next->next == NULL);
    I(q->fixed[1].at.y); I(q->fixed[2].color == BLUE); I(q->fixed[2].color); I(+copy.low); I(copy.high + 0); I(copy.low - 8 < 0); I(-copy.low); I(copy.high >> 1); I(p->raw); R(p->ratio);
    R(p->ratio * 2); R(q->weight / 3); R(half + 1); R(factor * n); R(-factor); R((float)1 / 3);
    I(n + 1); I(n - 100); I(n * -3); I(n / 7); I(n % 7); I(-n / 7); I(-n % 7); I(-n >> 1); I(n << 3); I(n & 12); I(n | 64); I(n ^ 5);
    I(big + 1); I(big * 2); I(big > n); I(-1 > big); I(big - 4000000001u); I(wide / 3); I(wide % 1000); I(wide >> 3); I(wide < n);
    I(~n); I(!n); I(!!n); I(-byte); I(byte + tiny); I(byte * byte); I(tiny >> 1); I((unsigned char)tiny); I((short)70000);
    I((int)factor); I((unsigned long)-1 / 2); I((_Bool)256); I((char)-1); I((long)n << 33); I(1u << 31); I(1 << 30); I((long long)3000000000);
    I(c == 'x'); I(c); I('\n'); I('\x41'); I('\''); I(0x1f); I(017); I(10u); I(4294967296); I(2147483648); I(0xffffffff); I(1UL << 40);
    I(array[1]); I(array[n - 40]); I(*array); I(*(array + 2)); I(2[array] == 30); I(end - array); I(end[-1]); I(array + 1 < end);
    I(*(int *)raw); I(((int *)raw)[3]); I((char *)end - (char *)array); I(&array[3] - &array[0]); I((item *)p == p); I(*&n);
    I(table[2][3]); I(sizeof(array)); I(sizeof array[0]); I(sizeof(item)); I(sizeof(struct queue)); I(sizeof(int *)); I(sizeof n + 1);
    I(sizeof(unsigned long)); I(sizeof(q->fixed)); I(sizeof(table[0]));
    I(n > 40 && q->len == 3); I(n > 50 || q->len == 2); I(n > 40 ? 7 : 8); I(n > 50 ? 7 : 8); I(p && p->next); I(!p || !p->next);
    I(n == 42 && (n > 1 ? 1 : 0)); I(1 + 2 * 3 - 4 / 2 % 3); I((1 + 2) * 3); I(1 < 2 == 1); I(7 & 3 == 3); I(1 | 2 ^ 3 & 4); I(1 ? 2 : 0 ? 3 : 4);
    I(hidden.len); I(shared.head == NULL); I(calls + 1); I(local_count); I(GREEN + 1); I(RED); I(READ | WRITE); I(NONE); I((enum color)6 == BLUE);
    I(q->handler == twice); I(yes); I(yes + yes); I(word[0]); I(*word); I(word[1] == 'l'); I(q->label[0]); I((unsigned char)word[0]);
    I(1.5 > 1); I(2.0 == 2); R(1e3); R(1.5f); R(.25); R(0x1p4); R(n + 0.5); R((double)big); R((double)wide); I(factor < 3); I(factor != factor);
    I((long)(factor * 10)); I((size_t)p == (size_t)q->head); I(n ? n : 0); I(+n); I(- -n); I((n)); I((n) + 1); I((n) - 1); I(-(n)); I((uint8_t)300);
    I((int8_t)200); I((uint16_t)-1); I(sizeof(uint64_t)); I((int16_t)70000); I((size_t)-1 > 0); I(p->negative); I(p->small); I(p->small << 4);
    abort();
}

int main(void)
{
    static item third = {0, "gamma", 30, 3, -3, 1, 2, {0.5f}, {5, 6}, RED};
    static item second = {&third, "beta", 20, 2, -2, 3, -4, {1.25f}, {3, 4}, BLUE};
    static item first = {&second, "alpha", 10, 255, -1, 7, -16, {2.75f}, {1, 2}, GREEN};
    hidden.len = 9;
    for (unsigned i = 0; i < 20; i++)
        table[i / 5][i % 5] = i * i;
    queue q = {3, &first, {first, second, third}, "queue one", 2.5, twice};
    q.fixed[2].color = BLUE;
    work(&q, 42, 2.25, "alpha");
    return 0;
}
