// A format on the heap, which has %n.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct user { int id; char *greeting; };
__attribute__((noinline)) static int greet(struct user *u, char *out, size_t size)
{
    return snprintf(out, size, u->greeting, u->id);
}
int main(int argc, char **argv)
{
    struct user u = {7, NULL};
    const char *in = argc > 1 ? argv[1] : "hello %d%n%n%n%n";
    u.greeting = malloc(strlen(in) + 1);
    strcpy(u.greeting, in);
    char out[200];
    int n = greet(&u, out, sizeof out);
    puts(out);
    return n > 200;
}
