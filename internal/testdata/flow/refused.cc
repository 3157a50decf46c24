// delete of a pointer that another member's setter put there.
//
// FLAGS: -O0
// ENDS: SIGABRT
// WAY: constant in share
#include <cstdio>
static int pool[4];
struct user { int *own; };
static void share(user *u) { u->own = pool; }
int main()
{
	user u = { new int[4] };
	share(&u);
	std::printf("%d\n", u.own[0]);
	delete[] u.own;
}
