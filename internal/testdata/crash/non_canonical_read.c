// A pointer that was overwritten with text is followed.
#include <string.h>

struct node {
    struct node *next;
    int value;
};

static struct node first, second = {0, 5};

__attribute__((noinline, noipa)) static int next_value(struct node *n)
{
    // WANT: non-canonical-pointer read:@LINE+1
    return n->next->value;
}

int main(void)
{
    first.next = &second;
#ifndef FIXED
    memcpy(&first, "overflow!", 9);
#endif
    return next_value(&first) != 5;
}
