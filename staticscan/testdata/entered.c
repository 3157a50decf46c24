// Arguments of functions, which they or those that they call still have when the program ends, or do not.
#include <signal.h>
#include <stdlib.h>
#include <string.h>

char given[64];
volatile char *seen;
int more;

__attribute__((noinline)) static void stop(void) { raise(SIGABRT); more++; }

// kept has its argument after the call.
__attribute__((noinline)) void kept(char *p) { stop(); seen = p + more; }

// handed gives it to another function and does not have it any more.
__attribute__((noinline)) void handed(char *p) { kept(p + 16); more++; }

// jumped is left for another function.
__attribute__((noinline)) void jumped(char *p) { kept(p - 8); }

// gone does not keep it.
__attribute__((noinline)) void gone(char *p) { seen = p; stop(); more++; }

// either keeps one of two values.
__attribute__((noinline)) void either(char *p) { if (more == 0) p += 8; stop(); seen = p + more; }

// changed keeps what it made of it.
__attribute__((noinline)) void changed(char *p) { p = (char *)((unsigned long)p & ~63ul); stop(); seen = p + more; }

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*call)(char *); } all[] = {
		{"kept", kept}, {"handed", handed}, {"jumped", jumped}, {"gone", gone}, {"either", either}, {"changed", changed}};
	for (int i = 0; argc > 1 && i < 6; i++)
		if (strcmp(all[i].name, argv[1]) == 0)
			all[i].call(given + 24);
	return 0;
}
