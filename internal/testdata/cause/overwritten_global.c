// The name of a terminal is copied into a field that is one too short for it, and
// the pointer after it loses its lowest byte.
// CAUSE kind=overwritten-variable variable=terminal.describe|terminal
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: xterm-256color-italic
// RUNS pass: xterm-256color
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	char name[16];
	const char *(*describe)(int columns);
	int columns;
} terminal;

static int shown;

static const char *wide(int columns)
{
	return columns > 100 ? "wide" : "usual";
}

static const char *narrow(int columns)
{
	return columns < 40 ? "very narrow" : "narrow";
}

static void set_width(int columns)
{
	terminal.columns = columns;
	terminal.describe = columns >= 80 ? wide : narrow;
}

static void set_name(const char *name)
{
	size_t n = strlen(name);

#ifdef FIXED
	if (n >= sizeof(terminal.name))
		n = sizeof(terminal.name) - 1;
#endif
	for (size_t i = 0; i < n; i++) {
		char c = name[i];

		terminal.name[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; // BUG
	}
}

static void show(void)
{
	const char *text = terminal.describe(terminal.columns);

	printf("%.16s is %s\n", terminal.name, text);
	shown++;
}

int main(int argc, char **argv)
{
	set_width(120);
	set_name("vt100");
	show();
	memset(terminal.name, 0, sizeof(terminal.name));
	set_name(argc > 1 ? argv[1] : "xterm");
	show();
	return shown != 2;
}
