// The compiler knows which of the two pointers is null, and the line uses both.
#include <stdio.h>
struct part { long head[3]; int size; };
__attribute__((noinline, noipa)) static int sum(struct part *first, struct part *last)
{
    if (last) return first->size;
    return first->size + last->size;
}
int main(void)
{
    struct part p = {{1, 2, 3}, 4};
    printf("%d\n", sum(&p, NULL));
    return 0;
}
