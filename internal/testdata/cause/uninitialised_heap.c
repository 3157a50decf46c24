// Shapes of a drawing: a circle has all it needs, a square lacks the function that
// says how large it is.
// CAUSE kind=uninitialised-value variable="*area|*@OBJECT*"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: c5 c2 s3
// RUNS pass: c5 c2 c3
#include <stdio.h>
#include <stdlib.h>

struct shape {
	char kind;
	int size;
	struct shape *next;
	long (*area)(const struct shape *);
};

static struct shape *drawing;
static long covered;

static long circle_area(const struct shape *s)
{
	return 314L * s->size * s->size / 100;
}

static long square_area(const struct shape *s)
{
	return (long)s->size * s->size;
}

static struct shape *new_shape(char kind, int size)
{
	struct shape *s = malloc(sizeof(*s)); // OBJECT

	s->kind = kind;
	s->size = size;
	s->next = NULL;
	switch (kind) {
	case 'c':
		s->area = circle_area;
		break;
	case 's':
#ifdef FIXED
		s->area = square_area;
#endif
		break;
	}
	return s;
}

static void add(const char *text)
{
	struct shape *s = new_shape(text[0], atoi(text + 1));

	s->next = drawing;
	drawing = s;
}

static void measure(void)
{
	for (struct shape *s = drawing; s; s = s->next)
		covered += s->area(s); // BUG
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		add(argv[i]);
	measure();
	printf("%ld covered\n", covered);
	return covered == 0 && square_area(drawing) == 0;
}
