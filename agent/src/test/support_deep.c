/* RTLD_DEEPBIND, with which an object would have libc's allocator in addition to the
 * agent's; and the caller of dlopen, whose RUNPATH is to be searched.
 *
 *	support_deep OBJECT NAME
 *
 * OBJECT is this source compiled with SUPPORT_OBJECT, NAME another one that is
 * found by OBJECT's RUNPATH alone. */
#define _GNU_SOURCE
#include <string.h>

#include "support_agent.h"

#ifdef SUPPORT_OBJECT
/* Memory from libc is freed here, memory from here by the caller. */
void *support_deep(void *theirs, const char *name)
{
	char *copy = strdup("a copy of libc's");

	free(theirs);
	free(copy);
	return dlopen(name, RTLD_NOW | RTLD_DEEPBIND) ? malloc(100) : NULL;
}
#else
int main(int argc, char **argv)
{
	void *(*deep)(void *, const char *), *object;

	agent_root();
	CHECK(argc == 3 && !dlopen(argv[2], RTLD_NOW));
	CHECK((object = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND)));
	*(void **)&deep = dlsym(object, "support_deep");
	CHECK(deep && (object = deep(malloc(50), argv[2])));
	free(object);
	CHECK(agent_root()->error_count == 0);
	puts("ok");
	return 0;
}
#endif
