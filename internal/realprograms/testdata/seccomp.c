/* Allows what a heap of libc's needs and what main does, and kills the process
 * at every other system call. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void restrict_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
		ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mremap),
		ALLOW(SYS_madvise), ALLOW(SYS_mprotect), ALLOW(SYS_futex), ALLOW(SYS_newfstatat),
		ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_getrandom),
#ifdef THREADS
		ALLOW(SYS_clone3), ALLOW(SYS_clone), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq),
		ALLOW(SYS_sched_getaffinity), ALLOW(SYS_rt_sigaction),
		/* glibc asks for the overcommit mode. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		exit(77);
	}
}

static void *work(void *arg)
{
	unsigned long sum = 0, seed = (unsigned long)arg;
	char *kept[500] = {0};

	for (int i = 0; i < 30000; i++) {
		int k = (seed = seed * 6364136223846793005ul + 1442695040888963407ul) >> 33 % 500;
		size_t size = i % 100 ? i * 7 % 900 + 1 : i * 11 % 300000 + 1;

		k %= 500;
		if (i % 3 == 0 && kept[k]) {
			kept[k] = realloc(kept[k], size);
		} else {
			free(kept[k]);
			kept[k] = i % 2 ? calloc(1, size) : malloc(size);
		}
		memset(kept[k], i, size);
		sum += (unsigned char)kept[k][size - 1];
	}
	for (int i = 0; i < 500; i++)
		free(kept[i]);
	return (void *)sum;
}

int main(void)
{
	void *sums[4] = {0};

#ifndef LATE
	restrict_calls();
#endif
	sums[0] = work((void *)1);
#ifdef LATE
	restrict_calls();
	sums[1] = work((void *)2);
#endif
#ifdef THREADS
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], &sums[i]);
#endif
	printf("%lu %lu %lu %lu\n", (unsigned long)sums[0], (unsigned long)sums[1], (unsigned long)sums[2],
	       (unsigned long)sums[3]);
	return 0;
}
