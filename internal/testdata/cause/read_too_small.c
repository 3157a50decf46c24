// A protocol whose second version has a longer greeting: it is read with the new
// length into the old structure, and the table after it takes the rest.
// CAUSE kind=overwritten-variable|value-from-input variable=state.handler|state
// FAILS signal=SIGSEGV says="no address"
// RUNS: serve
// INPUT fail: V2 hello, my name is client
// INPUT pass: V1 hello client
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct greeting_1 {
	char version[3];
	char text[13];
};

struct greeting_2 {
	char version[3];
	char text[25];
};

static struct {
	struct greeting_1 greeting;
	int (*handler)(const char *);
	int served;
} state;

static int welcome(const char *text)
{
	return (int)strcspn(text, "\n");
}

static size_t length_of(const char *version)
{
#ifdef FIXED
	return sizeof(struct greeting_1);
#else
	return version[1] == '2' ? sizeof(struct greeting_2) : sizeof(struct greeting_1);
#endif
}

static int receive(void)
{
	char version[3];
	size_t length;

	if (read(0, version, sizeof(version)) != (ssize_t)sizeof(version))
		return 0;
	length = length_of(version) - sizeof(version);
	memcpy(state.greeting.version, version, sizeof(version));
	return read(0, state.greeting.text, length) > 0; // BUG
}

static void serve(void)
{
	state.served += state.handler(state.greeting.text);
}

int main(int argc, char **argv)
{
	state.handler = welcome;
	if (receive())
		serve();
	printf("%s: %d\n", argc > 1 ? argv[1] : "", state.served);
	return 0;
}
