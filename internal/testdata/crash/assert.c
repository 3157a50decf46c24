// An invariant that does not hold.
#include <assert.h>

static volatile int used = 5, size = 4;

__attribute__((noinline, noipa)) static int room(void)
{
    // WANT: assertion-failure:@LINE+1
    assert(used <= size && "queue is consistent");
    return size - used;
}

int main(void)
{
#ifdef FIXED
    used = 2;
#endif
    return room() != 2;
}
