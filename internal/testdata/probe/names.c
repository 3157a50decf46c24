/* One name stands for several things: variables of functions, of the file, and functions of the C library. */
#include <stdlib.h>

struct pair {
    long n;
    int index;
    unsigned flag : 3, more : 9, last : 20;
};

static int total = 5;
double basename; /* a function of string.h, too */
struct pair sum = {1, 2, 3, 4, 5};

__attribute__((noinline)) void first(int n, struct pair *total)
{
    basename += n;
    total->n += n;
}

__attribute__((noinline)) void second(long long n, const char *sum)
{
    basename += n;
    total += sum[n] - '0';
}

enum pick { LEFT, RIGHT = 7 };

__attribute__((noinline)) void third(enum pick pick, struct pair *pair)
{
    basename += pick;
    pair->n += pick;
}

int main(void)
{
    first(3, &sum);
    second(1, "678");
    third(RIGHT, &sum);
    if (basename != 0)
        abort();
    return total;
}
