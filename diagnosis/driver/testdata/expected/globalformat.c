// A logger of the program's own is given a line of input as its format.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
static char line[256];
static int verbose = 1;
__attribute__((noinline, format(printf, 1, 2))) static void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (verbose)
        vprintf(fmt, ap);
    va_end(ap);
}
int main(int argc, char **argv)
{
    strcpy(line, argc > 1 ? argv[1] : "100%s of %s people %s %s %s %s %s %s %s %s\n");
    say(line);
    return 0;
}
