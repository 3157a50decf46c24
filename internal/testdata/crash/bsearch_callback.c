// A search whose key was not set.
#include <stdlib.h>

static int numbers[] = {1, 3, 5, 7};
static int *volatile key;
static int five = 5;

__attribute__((noinline, noipa)) static int compare(const void *k, const void *element)
{
    // WANT: null-pointer read:@LINE+1
    return *(const int *)k - *(const int *)element;
}

int main(void)
{
#ifdef FIXED
    key = &five;
#endif
    int *found = bsearch(key, numbers, 4, sizeof(int), compare);
    return found != &numbers[2];
}
