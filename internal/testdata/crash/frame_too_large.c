// A buffer on the stack that is larger than the stack.
#include <alloca.h>
#include <string.h>

#ifdef FIXED
static volatile size_t wanted = 64;
#else
static volatile size_t wanted = 64 << 20;
#endif

__attribute__((noinline, noipa)) static int sum(size_t size)
{
    // WANT: stack-overflow write:@LINE+1..+3
    char *buffer = alloca(size);
    memset(buffer, 1, size);
    return buffer[size / 2];
}

int main(void)
{
    return sum(wanted) != 1;
}
