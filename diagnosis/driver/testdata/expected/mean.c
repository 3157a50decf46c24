// The count is zero by a subtraction.
#include <stdio.h>
#include <stdlib.h>
struct stats { long total; int count, skipped; };
__attribute__((noinline)) static long mean(const struct stats *s)
{
    return s->total * 100 / (s->count - s->skipped);
}
int main(int argc, char **argv)
{
    struct stats s = {1000, 3, argc + 2};
    printf("%ld\n", mean(&s));
}
