/* A struct assignment of a local that begins with an array brings a null pointer, which the
   initialiser of the table has. */
#include <stdio.h>
struct route { char name[24]; const char *host; long port[12]; };
static const struct route table[2] = { { "local", "localhost", { 80 } }, { "none", 0, { 0 } } };
__attribute__((noinline)) static int first(const struct route *r) { return r->host[0]; }
__attribute__((noinline)) static int serve(int i)
{
	struct route r;
	r = table[i];
	r.name[0] = '-';
	return first(&r);
}
int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", serve(argc < 2));
	return 0;
}
