// The length of a name that is a small number.
#include <string.h>

static const char *volatile name;

__attribute__((noinline, noipa)) static size_t name_length(const char *s)
{
    // WANT: near-null-pointer read:@LINE+1
    size_t n = strlen(s);
    __asm__ volatile("" ::: "memory");
    return n;
}

int main(void)
{
#ifdef FIXED
    name = "abc";
#else
    name = (const char *)0x1234;
#endif
    return name_length(name) != 3;
}
