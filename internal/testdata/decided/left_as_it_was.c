/* A status is set first and left as it was, because a file is not there: that it was set decided nothing. */
// ENDS: exit 3
// DECIDED: nothing
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int load(const char *path)
{
	int code = -1, fd = open(path, O_RDONLY);
	if (fd < 0)
		goto out;
	code = close(fd);
out:
	return code;
}

int main(void)
{
	char path[64];
	snprintf(path, sizeof path, "/nonexistent/%d", 7); // whether the path is right is not known
	int code = load(path);
	if (code) {
		fprintf(stderr, "load failed with %d\n", code);
		return 3;
	}
	return 0;
}
