// The format is a constant; its argument is bad.
#include <stdio.h>
struct rec { int id; char *name; };
__attribute__((noinline)) static void show(struct rec *r) { printf("%d: %s\n", r->id, r->name); }
int main(void) { struct rec r = {1, (char *)8}; show(&r); return 0; }
