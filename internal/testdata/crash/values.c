// Variables of all kinds are in scope where the program fails.
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum colour { RED = 1, GREEN, BLUE = -3 };
struct flags {
    unsigned low : 3;
    unsigned middle : 7;
    signed high : 5;
};
struct point {
    int x, y;
};
struct shape {
    enum colour colour;
    struct point corners[3];
    union {
        int number;
        char bytes[4];
    } tag;
    struct flags flags;
    const char *label;
    struct shape *next;
    double weight;
    int (*area)(const struct shape *);
};

int global_count = 42;
static struct shape *volatile global_shape;
_Thread_local int thread_count = 7;
#ifdef FIXED
static volatile int *volatile hole = &global_count;
#else
static volatile int *volatile hole;
#endif

static int area_of(const struct shape *s) { return s->corners[1].x * s->corners[2].y; }

__attribute__((noinline, noipa)) static int print_all(struct shape *shape, int argc, char **argv)
{
    bool yes = true;
    char letter = 'q';
    signed char negative = -5;
    unsigned char byte = 200;
    short s = -300;
    uint16_t us = 60000;
    long l = -1234567890123;
    uint64_t big = 0xfedcba9876543210;
    __int128 huge = ((__int128)1 << 100) + 1;
    float f = 1.5f;
    double d = -0.1;
    long double ld = 3.25L;
    double complex z = 1.0 + 2.0 * I;
    wchar_t wide[] = L"wide";
    char text[16] = "some text";
    char full[4] = {'f', 'u', 'l', 'l'};
    const char *string = "a \"quoted\" string\n";
    const char *none = NULL;
    int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
    enum colour colour = BLUE;
    void *anything = &global_count;
    thread_count++;
    // WANT: null-pointer write:@LINE+1
    *hole = shape->corners[1].x;
    return yes + letter + negative + byte + s + us + (int)l + (int)big + (int)huge + (int)f + (int)d + (int)ld +
           (int)creal(z) + (int)wide[0] + text[0] + full[1] + string[0] + (none != NULL) + grid[1][2] + colour +
           (anything != NULL) + argc + (argv != NULL);
}

int main(int argc, char **argv)
{
    struct shape second = {.colour = GREEN, .label = "second", .area = area_of};
    struct shape first = {.colour = RED,
                          .corners = {{0, 0}, {3, 0}, {3, 4}},
                          .tag = {0x41424344},
                          .flags = {5, 100, -2},
                          .label = "first",
                          .next = &second,
                          .weight = 2.5,
                          .area = area_of};
    global_shape = &first;
    return print_all(global_shape, argc, argv) == 0;
}
