// The smallest integer by minus one.
#include <limits.h>
#include <stdio.h>
__attribute__((noinline)) static void scale(int *value, int by)
{
    *value /= by;
}
int main(int argc, char **argv)
{
    int v = argc == 1 ? INT_MIN : 4;
    scale(&v, -argc);
    printf("%d\n", v);
    return 0;
}
