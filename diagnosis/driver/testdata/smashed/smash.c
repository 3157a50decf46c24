/* Each function has an array that it writes past its end, if the number it is given is large enough: overrun NAME
 * NUMBER. The test has the array's name for each. The number "fit" is the twin without the bug. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static char *text; /* of the number of characters */
static unsigned char *noise;
static int length;
static volatile int sink;

APART static void show(const char *s) { sink += s[0] + (int)strlen(s); }

APART static int by_strcpy(int fit)
{
	char path[40];
	strcpy(path, fit ? "short" : text);
	show(path);
	return sink;
}

APART static int by_sprintf(int fit)
{
	char line[48];
	sprintf(line, "name=%s;", fit ? "x" : text);
	show(line);
	return sink;
}

APART static int by_memcpy(int fit)
{
	unsigned char packet[64];
	memcpy(packet, noise, fit ? sizeof packet : (size_t)length);
	sink += packet[length % 64];
	return sink;
}

APART static int by_loop(int fit)
{
	int values[16], n = fit ? 16 : length / 4;
	for (int i = 0; i < n; i++)
		values[i] = 1000 + i * 7;
	return sink += values[length % 16];
}

APART static int by_squares(int fit)
{
	int squares[12], n = fit ? 12 : length / 4;
	for (int i = 0; i < n; i++)
		squares[i] = (i + 3) * (i + 5);
	sink += squares[length % 12];
	return sink;
}

struct session {
	long id;
	char name[24];
	int flags;
};

APART static int in_struct(int fit)
{
	struct session s = {1, "", 0};
	strcpy(s.name, fit ? "me" : text);
	show(s.name);
	return (int)s.id + s.flags;
}

APART static int by_read(int fit)
{
	char input[32];
	int fd[2];
	if (pipe(fd) || write(fd[1], text, length) != length)
		exit(3);
	long n = read(fd[0], input, fit ? sizeof input : 4096);
	sink += n;
	return input[0];
}

APART static int by_memset(int fit)
{
	short marks[20];
	memset(marks, 0xee, fit ? sizeof marks : (size_t)length);
	sink += marks[length % 20];
	return sink;
}

APART static void copy_words(char *to, const char *from)
{
	while ((*to++ = *from++) != 0)
		;
}

APART static int by_own(int fit)
{
	char word[28];
	copy_words(word, fit ? "ok" : text);
	show(word);
	return sink;
}

int main(int argc, char **argv)
{
	int fit = !strcmp(argv[2], "fit");
	length = fit ? 60 : atoi(argv[2]);
	text = malloc(length + 1);
	noise = malloc(length + 4096);
	unsigned state = 12345;
	for (int i = 0; i < length; i++)
		text[i] = 'a' + i % 23;
	text[length] = 0;
	for (int i = 0; i < length + 4096; i++)
		noise[i] = (state = state * 1103515245 + 12345) >> 16;
	char above[512]; /* the overrun stays on the stack */
	memset(above, 1, sizeof above);
	sink = above[argc];
	if (!strcmp(argv[1], "by_strcpy"))
		sink += by_strcpy(fit);
	if (!strcmp(argv[1], "by_sprintf"))
		sink += by_sprintf(fit);
	if (!strcmp(argv[1], "by_memcpy"))
		sink += by_memcpy(fit);
	if (!strcmp(argv[1], "by_loop"))
		sink += by_loop(fit);
	if (!strcmp(argv[1], "by_squares"))
		sink += by_squares(fit);
	if (!strcmp(argv[1], "in_struct"))
		sink += in_struct(fit);
	if (!strcmp(argv[1], "by_read"))
		sink += by_read(fit);
	if (!strcmp(argv[1], "by_memset"))
		sink += by_memset(fit);
	if (!strcmp(argv[1], "by_own"))
		sink += by_own(fit);
	printf("%d\n", sink != 0);
	return 0;
}
