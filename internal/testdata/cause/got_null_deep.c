// Settings in sections: where one is not there, neither is its default, three calls
// further in.
// CAUSE kind=bad-value variable="s|the result of setting"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: depth width colour
// RUNS pass: depth width depth
// COMPILERS: gcc clang
#include <stdio.h>
#include <string.h>

struct setting {
	const char *name;
	int value;
};

struct section {
	const char *title;
	struct setting settings[4];
	int count;
};

static struct section sections[] = {
	{ "size", { { "width", 40 }, { "height", 30 } }, 2 },
	{ "look", { { "depth", 8 } }, 1 },
};

__attribute__((noinline)) static struct setting *in_section(struct section *in, const char *name)
{
	for (int i = 0; i < in->count; i++) // BUG 1
		if (strcmp(in->settings[i].name, name) == 0)
			return &in->settings[i];
	return NULL; // BUG
}

__attribute__((noinline)) static struct setting *default_of(const char *name)
{
	struct setting *s = in_section(&sections[0], name);

	if (s)
		return s;
	s = in_section(&sections[1], name);
	return s;
}

__attribute__((noinline)) static struct setting *setting(const char *name)
{
	if (name[0] == '-')
		name++;
	return default_of(name);
}

int main(int argc, char **argv)
{
	int sum = 0;

	for (int i = 1; i < argc; i++) {
		struct setting *s = setting(argv[i]);

#ifdef FIXED
		if (!s)
			continue;
#endif
		sum += s->value;
	}
	printf("%d\n", sum);
	return 0;
}
