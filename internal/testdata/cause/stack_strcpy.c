// A login that shows who comes from where: the name of the host is as long as its
// owner likes.
// CAUSE kind=stack-smashing
// FAILS signal=SIGABRT says="stack smashing"
// RUNS fail: ann a-host-with-a-very-long-name-that-no-one-would-ever-want-to-type.example.org
// RUNS pass: ann host.example.org
// FLAGS: -fstack-protector-strong -U_FORTIFY_SOURCE
// COMPILERS: gcc clang
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct login {
	const char *user, *host;
	long number;
};

static long logins;
static unsigned greeted;

__attribute__((noinline)) static unsigned greet(const struct login *l)
{
	char line[40];
	unsigned length;

#ifdef FIXED
	snprintf(line, sizeof(line), "%s from %s", l->user, l->host);
#else
	strcpy(line, l->user);
	strcat(line, " from ");
	strcat(line, l->host); // BUG
#endif
	length = (unsigned)strlen(line);
	printf("%ld: welcome, %s\n", l->number, line);
	return length;
}

static void log_in(const char *user, const char *host)
{
	struct login l = { user, host, ++logins };

	greeted += greet(&l);
}

int main(int argc, char **argv)
{
	log_in("root", "localhost");
	for (int i = 1; i + 1 < argc; i += 2)
		log_in(argv[i], argv[i + 1]);
	return greeted == 0;
}
