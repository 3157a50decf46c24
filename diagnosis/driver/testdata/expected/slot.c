// A remainder by a size of zero.
#include <stdio.h>
#include <stdlib.h>
struct map { unsigned size; unsigned long *slots; };
__attribute__((noinline)) static unsigned slot(struct map *m, unsigned long key)
{
    return (key * 2654435761u) % m->size;
}
int main(int argc, char **argv)
{
    struct map m = {argc - 1, NULL};
    printf("%u\n", slot(&m, argc));
}
