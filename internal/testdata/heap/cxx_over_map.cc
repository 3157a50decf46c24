// The value of a map's node is written as if it were the wider type.
#include <cstring>
#include <map>

#include "lib/hide.h"

struct Counter {
    long hits = 0;
#ifdef FIXED
    long misses = 0;
#endif
};

NOINLINE static void reset(void *counter)
{
    static const long both[2] = {1, 0x6d6d6d6d6d6d6d6d};
    std::memcpy(counter, both, sizeof both);
}

int main()
{
    std::map<long, Counter> counters;
    counters[1].hits = 1; // @made
    reset(hide(&counters[1]));
    // A node of libstdc++ is four words, the key and the value.
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=48 offset=48 bytes=8 text=mmmmmmmm api=new alloc:@made call:@LINE+1
    counters.erase(1);
    return 0;
}
