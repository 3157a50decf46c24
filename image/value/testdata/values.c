// Variables of every kind that C has, in a function that crashes and in its
// callers. Compiled with and without optimization.
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum color { RED, GREEN, BLUE = 7, NONE = -1 };
enum flags { READ = 1, WRITE = 2, APPEND = 8 };
typedef int (*handler_fn)(int);
struct point { short x, y; };
union number { int i; float f; unsigned char bytes[8]; };
struct node {
    struct node *next;
    const char *name;
    enum color color;
    unsigned low : 3, mid : 7;
    int sign : 5;
    bool ready : 1;
    struct point where[2];
    union number number;
    struct { int inner; long long wide; };
    handler_fn handler;
    char text[16];
    int many[64];
};

static int twice(int n) { return 2 * n; }
int counter = 42;
static struct node first = {.name = "first", .color = BLUE, .low = 5, .mid = 100, .sign = -3, .ready = true,
    .where = {{1, -2}, {3, 4}}, .number = {.i = 0x3fc00000}, .inner = -9, .wide = 1LL << 40,
    .handler = twice, .text = "a \"text\"\n"};
static __thread int per_thread = 77;

static int *volatile nowhere_at_all;

__attribute__((noinline)) void crash(struct node *target, int depth, double ratio) {
    *nowhere_at_all = depth + (int)ratio + target->low;
}

__attribute__((noinline)) long inspect(struct node *node, int small, unsigned long big, double ratio, float half,
    char letter, const char *label, struct point point, struct node copy) {
    int8_t tiny = (int8_t)(small - 130);
    uint16_t port = (uint16_t)(big >> 3);
    bool yes = small > 1;
    enum flags mode = READ | APPEND;
    enum color odd = (enum color)(small * 11);
    long long product = (long long)big * small;
    double scaled = ratio * 3;
    float less = half - 1;
    long double precise = ratio / 7;
    void *nowhere = (void *)(uintptr_t)(small - 3);
    int *inside = &node->many[5];
    int grid[2][3] = {{1, 2, 3}, {4, 5, small}};
    unsigned char raw[5] = {0, 1, 2, 0xfe, (unsigned char)small};
    char name[12] = "inspected";
    handler_fn handler = node->handler;
    per_thread++;
    crash(node, small, ratio);
    return tiny + port + yes + mode + odd + product + (long)scaled + (long)less + (long)precise + (nowhere == inside) +
        grid[1][small % 3] + raw[small % 5] + name[small] + handler(small) + letter + label[0] + point.x + copy.low + (long)big;
}

__attribute__((noinline)) int outer(int argc, char **argv) {
    struct node *node = &first;
    unsigned long mask = 0xdeadbeefcafe0000ul + (unsigned long)argc;
    struct point where = {(short)(argc + 10), (short)-argc};
    long result = inspect(node, argc + 2, mask, argc + 0.5, argc * 0.25f, (char)('x' + argc), argv[0], where, first);
    return (int)result + where.x + node->low + (int)mask;
}

int main(int argc, char **argv) {
    first.next = &first;
    memset(first.many + 10, 1, sizeof(int) * 20);
    return outer(argc, argv) + counter;
}
