// Stores through the address of a local array whose function has returned put numbers over the pointers of another frame.
//
// FLAGS: -O0
// ENDS: SIGSEGV
// WAY: left in begin
#include <cstdio>
struct Queue { long *jobs; };
__attribute__((noinline)) static void begin(Queue &queue)
{
	long local[64] = { 1, 2, 3 };
	queue.jobs = local;
}
__attribute__((noinline)) static int finish(Queue &queue, const char *name)
{
	const char *names[24];
	for (auto &n : names)
		n = name;
	for (int i = 63; i >= 0; i--)
		if (queue.jobs[i] == reinterpret_cast<long>(name))
			queue.jobs[i] = 9;
	return *names[12];
}
int main(int, char **argv)
{
	Queue queue;
	begin(queue);
	std::printf("%d\n", finish(queue, argv[0]));
	return 0;
}
