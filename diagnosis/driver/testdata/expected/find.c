// The compiler knows that n is null after the loop.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; long key; char *text; };
struct node *head;
__attribute__((noinline)) static struct node *find(long key)
{
    struct node *n;
    for (n = head; n; n = n->next)
        if (n->key == key)
            return n;
    n->key = key;      /* FLAW: n is null here */
    return n;
}
int main(int argc, char **argv)
{
    struct node a = {0, 1, "a"};
    head = &a;
    return find(argc + 4)->key;
}
