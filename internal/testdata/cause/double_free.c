// A message that is refused: the parser frees its parts, and so does the caller,
// who was told that it failed.
// CAUSE kind=double-free
// FAILS signal=SIGABRT says="free"
// RUNS: mail
// INPUT: to:ann
// INPUT fail: from
// INPUT pass: from:bob
// INPUT: text:hello
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct header {
	char *name, *value;
};

struct message {
	struct header headers[8];
	int count;
};

static int refused, taken;

static void forget(struct header *h)
{
	free(h->name);
	free(h->value); // BUG 2
}

static char *copy(const char *from, size_t n)
{
	char *text = malloc(n + 1); // OBJECT

	memcpy(text, from, n);
	text[n] = '\0';
	return text;
}

static int parse(struct header *h, const char *line)
{
	size_t n = strcspn(line, ":");

	h->name = NULL;
	h->value = copy(line + n, strlen(line + n));
	if (line[n] != ':') {
		free(h->value); // BUG 1
#ifdef FIXED
		h->value = NULL;
#endif
		return -1;
	}
	h->name = copy(line, n);
	return 0;
}

static void add(struct message *m, const char *line)
{
	struct header *h = &m->headers[m->count];

	if (parse(h, line) < 0) {
		forget(h);
		refused++;
		return;
	}
	m->count++;
	taken++;
}

int main(int argc, char **argv)
{
	static struct message m;
	char line[100];

	while (m.count < 8 && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		add(&m, line);
	}
	printf("%s: %d taken, %d refused\n", argc > 1 ? argv[1] : "", taken, refused);
	while (m.count)
		forget(&m.headers[--m.count]);
	return 0;
}
