#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int value; };
__attribute__((noinline)) static struct node *make(void) { struct node *n = malloc(sizeof *n); n->next = n; n->value = 7; return n; }
__attribute__((noinline)) static void drop(struct node *n) { free(n); }
int main(void) { struct node *n = make(); drop(n); n->next->value = 1; return 0; }
