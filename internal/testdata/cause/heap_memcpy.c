// A server that collects a request's body in chunks. The length that the client
// announced is that of the buffer, and no code compares it with what comes.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS: post
// INPUT fail: 24
// INPUT fail: the first chunk,
// INPUT fail: and a second one that is too long.
// INPUT pass: 64
// INPUT pass: the first chunk,
// INPUT pass: and a second one that is too long.
// COMPILERS: gcc clang
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
	char method[8];
	size_t announced, received;
	char *body;
};

static struct request *begin(const char *method, size_t announced)
{
	struct request *r = calloc(1, sizeof(*r));

	snprintf(r->method, sizeof(r->method), "%s", method);
	r->announced = announced;
	r->body = malloc(announced); // OBJECT
	return r;
}

static void receive(struct request *r, const char *chunk)
{
	size_t n = strlen(chunk);

#ifdef FIXED
	if (n > r->announced - r->received)
		n = r->announced - r->received;
#endif
	memcpy(r->body + r->received, chunk, n); // BUG
	r->received += n;
}

static size_t words(const struct request *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->received && i < r->announced; i++)
		count += r->body[i] == ' ';
	return count;
}

static void end(struct request *r)
{
	printf("%s: %zu bytes, %zu words\n", r->method, r->received, words(r));
	free(r->body);
	free(r);
}

int main(int argc, char **argv)
{
	char line[256];
	struct request *r;

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	r = begin(argc > 1 ? argv[1] : "get", strtoul(line, NULL, 10));
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		receive(r, line);
	}
	end(r);
	return 0;
}
