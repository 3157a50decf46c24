// Regular files and directories.
// ENDS: SIGABRT
// What is called below, without what glibc adds and file systems may lack.
// EVENTS: syscall 47
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

static void contents(int fd)
{
	char text[64], more[64];
	struct iovec two[2] = { { text, 3 }, { more, 64 } };
	loff_t from = 2, to = 40;
	int other;

	must(check(write(fd, "some words of a file", 20)) == 20);
	must(check(pwrite(fd, "MORE", 4, 30)) == 4);
	check(lseek(fd, 5, SEEK_SET));
	must(check(read(fd, text, 5)) == 5 && !memcmp(text, "words", 5));
	must(check(pread(fd, text, sizeof(text), 0)) == 34 && !memcmp(text + 30, "MORE", 4));
	fold_in(text, 34);
	must(check(preadv(fd, two, 2, 0)) == 34 && !memcmp(more, "e words", 7));
	two[0] = (struct iovec){ "ab", 2 };
	two[1] = (struct iovec){ "cde", 3 };
	must(check(pwritev(fd, two, 2, 50)) == 5);
	must(read(fd, text, 0) == 0);
	other = check(open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600));
	must(check(copy_file_range(fd, &from, other, &to, 10, 0)) == 10 && from == 12 && to == 50);
	must(check(sendfile(other, fd, &from, 8)) == 8 && from == 20);
	check(close(other));
	check(ftruncate(fd, 45));
	check(fallocate(fd, 0, 0, 8192));
	check(fdatasync(fd));
}

static void names(void)
{
	struct stat st, other;
	struct statx stx;
	struct statfs fs;
	char target[256];

	check(stat("copy", &st));
	check(lstat("copy", &other));
	must(st.st_ino == other.st_ino);
	fold_in(&st, sizeof(st));
	check(statx(AT_FDCWD, "copy", 0, STATX_BASIC_STATS | STATX_BTIME, &stx));
	must(stx.stx_ino == st.st_ino);
	fold_in(&stx, sizeof(stx));
	check(statfs(".", &fs));
	check(symlink("copy", "link"));
	must(check(readlink("link", target, sizeof(target))) == 4 && !memcmp(target, "copy", 4));
	check(link("copy", "hard"));
	check(rename("hard", "harder"));
	check(chmod("harder", 0640));
	check(access("harder", R_OK));
	must(access("nothing", F_OK) == -1 && errno == ENOENT);
	must(open("nothing/at/all", O_RDONLY) == -1 && errno == ENOENT);
	must(open((const char *)8, O_RDONLY) == -1 && errno == EFAULT);
	must(read(99, target, 10) == -1 && errno == EBADF);
	if (!setxattr("copy", "user.colour", "green", 5, 0)) {
		must(check(getxattr("copy", "user.colour", target, sizeof(target))) == 5);
		check(listxattr("copy", target, sizeof(target)));
	}
	check(truncate("copy", 3));
}

static void directory(void)
{
	struct dirent *entry;
	DIR *dir = opendir(".");
	int count = 0;

	must(dir != NULL);
	while ((entry = readdir(dir))) {
		fold_in(entry->d_name, strlen(entry->d_name));
		fold_in(&entry->d_ino, sizeof(entry->d_ino));
		count++;
	}
	closedir(dir);
	must(count == 6);
}

int main(void)
{
	char path[] = "/tmp/dgfilesXXXXXX", here[4096];
	int fd;

	must(mkdtemp(path) != NULL);
	fold_in(path, sizeof(path));
	check(chdir(path));
	must(getcwd(here, sizeof(here)) && !strcmp(here, path));
	fd = check(open("file", O_RDWR | O_CREAT | O_EXCL, 0600));
	contents(fd);
	names();
	directory();
	check(close(fd));
	check(unlink("file"));
	check(unlink("copy"));
	check(unlink("link"));
	check(unlink("harder"));
	check(chdir("/"));
	check(rmdir(path));
	printf("%lx\n", fold);
	fflush(stdout);
	abort();
}
