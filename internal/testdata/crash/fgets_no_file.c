// The result of fopen is not looked at.
#include <stdio.h>

#ifdef FIXED
static const char *volatile path = "/dev/null";
#else
static const char *volatile path = "/nonexistent/file";
#endif

__attribute__((noinline, noipa)) static int lines(const char *name)
{
    char line[64];
    int count = 0;
    FILE *file = fopen(name, "r");
    // WANT: null-pointer read:@LINE+1
    while (fgets(line, sizeof line, file))
        count++;
    fclose(file);
    return count;
}

int main(void)
{
    return lines(path);
}
