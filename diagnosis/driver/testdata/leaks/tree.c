// LOST 1 30: a subtree is cut off, and its nodes lead to their parents.
#include "leaks.h"
enum kind { LEAF, INNER };
struct tree { enum kind kind; struct tree *parent; union { struct tree *sub[2]; char word[16]; } u; char *label; };
struct tree *volatile root;
__attribute__((noinline)) static struct tree *grow(struct tree *parent, int depth)
{
	struct tree *t = calloc(1, sizeof *t);
	t->parent = parent;
	if (depth == 0)
		return t;
	t->kind = INNER;
	for (int i = 0; i < 2; i++)
		t->u.sub[i] = grow(t, depth - 1);
	return t;
}
__attribute__((noinline)) static void cut(void)
{
	struct tree *t = root->u.sub[1]->u.sub[0];
	root->u.sub[1]->u.sub[0] = NULL;
	t->parent = NULL;
	lose(t);
}
int main(int argc, char **argv)
{
	(void)argv;
	fixed = argc > 1;
	root = grow(NULL, 6);
	cut();
	finish();
}
