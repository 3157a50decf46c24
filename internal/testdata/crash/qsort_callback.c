// A comparison function meets a hole in the array.
#include <stdlib.h>

struct entry {
    int rank;
};
static struct entry a = {3}, b = {1}, c = {2};
static struct entry *list[] = {&a, &b, NULL, &c};

static int by_rank(const void *x, const void *y)
{
    const struct entry *const *l = x, *const *r = y;
    // WANT: null-pointer read:@LINE+1
    return (*l)->rank - (*r)->rank;
}

int main(void)
{
#ifdef FIXED
    list[2] = &a;
#endif
    qsort(list, 4, sizeof list[0], by_rank);
    return list[0]->rank != 1;
}
