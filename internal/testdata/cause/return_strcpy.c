// A path is joined in a buffer on the stack that has no guard: a long name takes the
// place of the return address, and the function comes back to letters.
// CAUSE kind=stack-smashing variable="path|path*|*path*|the return address*"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: a-name-that-a-person-has-made-up-who-did-not-know-of-the-buffer-on-the-stack
// RUNS pass: name
// FLAGS: -fno-stack-protector
#include <stdio.h>
#include <string.h>

static int found;

static __attribute__((noinline)) int is_there(const char *path)
{
	return path[0] == '/' && strchr(path, 'm') != NULL;
}

static __attribute__((noinline)) void look_for(const char *name)
{
	char path[24] = "/etc/";

#ifdef FIXED
	snprintf(path + 5, sizeof(path) - 5, "%s", name);
#else
	strcat(path, name); // BUG
#endif
	found += is_there(path);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		look_for(argv[i]);
	printf("%d found\n", found);
	return 0;
}
