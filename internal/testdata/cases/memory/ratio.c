/* gcc -g -O0: an unsigned ratio of two counters of a frame that others' frames were in before;
   the one that divides was reset by its address. */
#include <stdio.h>
#include <string.h>
static int fill(int n)
{
    char line[300];
    memset(line, 0, sizeof line);
    snprintf(line, sizeof line, "%d", n);
    return line[0];
}
static void reset(unsigned *counter) { *counter = 0; }
static unsigned ratio(int keep)
{
    unsigned hits = 10, all = 20;
    fill(keep);
    if (!keep)
        reset(&all);
    fill(keep);
    return hits / all;
}
int main(int argc, char **argv)
{
    fill(1);
    printf("%u\n", ratio(argc > 1));
    return 0;
}
