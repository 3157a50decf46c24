// A thread's end: thread_local destructors, and destructors of keys in all
// rounds, free and allocate; until the last round in the thread's own heap.
#include <pthread.h>
#include <limits.h>
#include <string.h>

#include <memory>
#include <string>
#include <vector>

#include "support_agent.h"

namespace {

pthread_key_t keys[6];
unsigned rounds, own_frees, local_destructors;
dg_heap *heap;

dg_heap *heap_of_this_thread()
{
	for (unsigned i = 1; i < agent_root()->heaps.used; i++) {
		dg_heap *h = agent_heap(i);

		if (h->state == DG_HEAP_OWNED && h->thread == agent_root()->threads.used - 1)
			return h;
	}
	return nullptr;
}

// Re-arms itself as often as the C library allows.
void destroy(void *value)
{
	uint64_t before = heap->frees;

	free(value);
	own_frees += heap->frees == before + 1;
	rounds++;
	CHECK(!pthread_setspecific(keys[rounds % 6], malloc(77)));
}

struct Local {
	std::vector<std::string> strings;

	~Local()
	{
		uint64_t before = heap->frees;

		strings.clear();
		strings.push_back(std::string(200, 'z'));
		strings.clear();
		CHECK(heap->frees > before);
		local_destructors++;
	}
};

thread_local Local local;

void *worker(void *)
{
	local.strings.assign(10, std::string(100, 'y'));
	heap = heap_of_this_thread();
	CHECK(heap);
	for (pthread_key_t key : keys)
		CHECK(!pthread_setspecific(key, malloc(50)));
	return nullptr;
}

} // namespace

int main()
{
	pthread_t t;

	// Keys made before and after the agent's own one are not told apart by
	// the order of destructors within a round.
	for (pthread_key_t &key : keys)
		CHECK(!pthread_key_create(&key, destroy));
	for (unsigned n = 0; n < 50; n++) {
		rounds = own_frees = local_destructors = 0;
		CHECK(!pthread_create(&t, nullptr, worker, nullptr));
		CHECK(!pthread_join(t, nullptr));
		CHECK(local_destructors == 1);
		CHECK(rounds > 6 * (PTHREAD_DESTRUCTOR_ITERATIONS - 1));
		// All but those of the last round, which may come after the agent's.
		CHECK(own_frees >= rounds - 6);
		CHECK(heap->state == DG_HEAP_IDLE);
	}
	CHECK(agent_root()->heaps.used <= 3);
	CHECK(agent_root()->error_count == 0);
	puts("ok");
	return 0;
}
