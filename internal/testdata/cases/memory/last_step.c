/* gcc -g -O0: a remainder by a member of a local struct, which the last round of the loop sets
   to 0. The division reads it from memory, where deeper calls had zeros before. */
#include <stdio.h>
struct range { long sum, step; };
static void show(long n) { printf("%ld\n", n); }
static long walk(const int *steps, int n)
{
    struct range r;
    r.sum = 100;
    r.step = 1;
    for (int i = 0; i < n; i++) {
        show(r.sum);
        r.step = steps[i];
    }
    return r.sum % r.step;
}
int main(int argc, char **argv)
{
    static int steps[] = { 3, 2, 0 };
    printf("%ld\n", walk(steps, argc > 1 ? 2 : 3));
    return 0;
}
